"""`webdyno load` has the flags of the load generator."""

import re
import subprocess
from dataclasses import fields

import pytest

from webdyno.cli.load import ENGINES, LoadFlags, _limit
from webdyno.generator.loadgen import find_loadgen
from webdyno.model.errors import UserError

OTHERWISE = {"csv", "fail-on", "hdr", "help", "json", "quiet", "stop-on"}
"""Flags of the load generator that are `--fail-if`, `--stop-if`, `--format` and others here."""


def test_all_flags_are_those_of_the_load_generator() -> None:
    asked = subprocess.run(
        [find_loadgen(), "run", "--help"], capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", asked.stdout, re.MULTILINE))
    flags = {
        ENGINES.get(field.name, field.name.replace("_", "-")): field.name
        for field in fields(LoadFlags)
    }
    assert flags.keys() | OTHERWISE == known


def test_failures_may_be_limited_by_a_share() -> None:
    assert _limit("--fail-if", "failures > 0.1%") == "failures>0.1%"
    assert _limit("--fail-if", "throughput < 1000") == "rate<1000"
    for bad in ("p99 > 5%", "throughput < 5%", "failures", "failures > x%"):
        with pytest.raises(UserError, match="--stop-if"):
            _limit("--stop-if", bad)
