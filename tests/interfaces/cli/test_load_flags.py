"""`webdyno load` has the flags of the load generator."""

import re
import subprocess
from dataclasses import fields

import pytest

from webdyno.core.errors import UserError
from webdyno.interfaces.cli.load import LoadFlags, _limit
from webdyno.load.engine import find_loadgen

OTHERWISE = {"csv", "fail-if", "hdr", "help", "json", "quiet", "stop-if"}
"""Flags that aren't fields of the load: `--format csv` and others, and those of the command."""


def test_all_flags_are_those_of_the_load_generator() -> None:
    asked = subprocess.run(
        [find_loadgen(), "run", "--help"], capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", asked.stdout, re.MULTILINE))
    flags = {field.name.replace("_", "-") for field in fields(LoadFlags)}
    compiled = {"proto"}, {"protoset"}  # the file is compiled for the engine
    assert (flags - compiled[0]) | compiled[1] | OTHERWISE == known


def test_failures_may_be_limited_by_a_share() -> None:
    for good in ("failures > 0.1%", "throughput < 1000"):
        assert _limit("--fail-if", good) == good
    for bad in ("p99 > 5%", "throughput < 5%", "failures", "failures > x%"):
        with pytest.raises(UserError, match="--stop-if"):
            _limit("--stop-if", bad)
