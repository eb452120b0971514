"""Recorded runs, each judged once for all tests of it."""

from typing import NamedTuple

import pytest

from reference.recorded import names, unpacked
from webdyno.comparison import judge_sweep
from webdyno.core.sweep import SweepJudgement
from webdyno.evidence.point_data import RunData


class Kept(NamedTuple):
    """A run that is kept, and what it is judged to be."""

    name: str
    run: RunData
    judged: SweepJudgement


@pytest.fixture(scope="session", params=names())
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    run = unpacked(request.param, tmp_path_factory.mktemp("kept")).data()
    return Kept(request.param, run, judge_sweep(run))
