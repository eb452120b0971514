"""What each client reports as percentiles of its latency, in milliseconds."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
from hdrh.histogram import HdrHistogram

from rig.process import BenchError
from rig.truth import PERCENTILES, percentile

Percentiles = dict[float, float]

LUA = Path(__file__).with_suffix(".lua")
"""The script that makes wrk and wrk2 print what `wrk` here reads."""


def loadgen(output: str) -> Percentiles:
    """Read the response-time histogram of `loadgen run --json`."""
    try:
        encoded = json.loads(output)["latency_us"]["histogram"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise BenchError(f"loadgen's output is not as agreed: {error!r}") from None
    histogram = HdrHistogram.decode(encoded)
    return {percent: histogram.get_value_at_percentile(percent) / 1e3 for percent in PERCENTILES}


def wrk(output: str) -> Percentiles:
    """Read what the Lua script prints, for wrk and for wrk2."""
    found = re.findall(r"^percentile ([\d.]+) (\d+)$", output, re.MULTILINE)
    if len(found) != len(PERCENTILES):
        raise BenchError(f"no percentiles in: {output[-300:]!r}")
    return {float(percent): int(value_us) / 1e3 for percent, value_us in found}


def hey(output: str) -> Percentiles:
    """Read hey's list of all requests (`-o csv`)."""
    try:
        rows = csv.DictReader(io.StringIO(output))
        latency_ms = np.array([float(row["response-time"]) * 1e3 for row in rows])
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise BenchError(f"hey's list has an unknown form: {error!r}") from None
    if not len(latency_ms):
        raise BenchError("hey lists no request")
    return {percent: percentile(latency_ms, percent) for percent in PERCENTILES}


def oha(output: str) -> Percentiles:
    """Read oha's JSON."""
    try:
        found = json.loads(output)["latencyPercentiles"]
        return {percent: found[f"p{percent:g}"] * 1e3 for percent in PERCENTILES}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise BenchError(f"oha's output has an unknown form: {error!r}") from None
