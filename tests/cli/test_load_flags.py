"""`webdyno load` has no flag that the load generator doesn't know."""

import re
import subprocess
from dataclasses import fields

import pytest

from webdyno.cli.load import ENGINES, LoadFlags, _limit
from webdyno.generator.loadgen import find_loadgen
from webdyno.model.errors import UserError


def test_each_flag_is_one_of_the_load_generator() -> None:
    asked = subprocess.run(
        [find_loadgen(), "run", "--help"], capture_output=True, text=True, check=True
    )
    known = set(re.findall(r"--([a-z0-9-]+)", asked.stdout))
    flags = {
        ENGINES.get(field.name, field.name.replace("_", "-")): field.name
        for field in fields(LoadFlags)
    }
    assert not flags.keys() - known


def test_failures_may_be_limited_by_a_share() -> None:
    assert _limit("failures > 0.1%") == "failures>0.1%"
    assert _limit("throughput < 1000") == "rate<1000"
    for bad in ("p99 > 5%", "throughput < 5%", "failures", "failures > x%"):
        with pytest.raises(UserError, match="--fail-if"):
            _limit(bad)
