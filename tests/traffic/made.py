"""Logs whose truth is known."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from webdyno.traffic.log import Log, LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs

BEGIN_S = 1_763_800_000
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def common_time(time_s: float) -> str:
    at = datetime.fromtimestamp(int(time_s), UTC)
    return f"{at:%d}/{MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000"


def line(
    path: str = "/",
    *,
    client: str = "10.0.0.1",
    time_s: float = BEGIN_S,
    method: str = "GET",
    status: int = 200,
    size: int = 100,
) -> str:
    return (
        f'{client} - - [{common_time(time_s)}] "{method} {path} HTTP/1.1" {status} {size} '
        '"-" "Mozilla/5.0"\n'
    )


def read(path: Path, text: str, wanted: LogSelection | None = None) -> Log:
    """Read a log of this text, queries dropped."""
    path.write_text(text, encoding="utf-8")
    return read_logs([path], wanted or LogSelection(), Privacy("drop", "hash"))


def zipf_draws(seed: int, requests: int, paths: int, exponent: float) -> NDArray[np.int64]:
    shares = np.arange(1, paths + 1) ** -exponent
    return np.random.default_rng(seed).choice(paths, requests, p=shares / shares.sum())
