"""How many users there are where nobody says, by how dear their logins are."""

from contextlib import nullcontext

import pytest

from builders import run_head
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.request import WrittenRequest
from webdyno.launch.caller import Caller
from webdyno.launch.measure import _with_few_users
from webdyno.measure.point import FEW_USERS

LOGIN = [WrittenRequest(path="/login", method="POST")]


def with_load(load: Load) -> Experiment:
    return run_head().experiment.replace(login=LOGIN, load=load)


@pytest.mark.parametrize(
    ("takes_s", "load", "users"),
    [
        (0.0, Load(), 64),
        (0.001, Load(), 64),
        (0.5, Load(), 20),
        (60.0, Load(), FEW_USERS),
        (60.0, Load(connections=64), 64),
        (60.0, Load(connections=32), 32),
    ],
)
def test_users_are_as_many_as_log_in_within_seconds_unless_somebody_says_how_many(
    takes_s: float, load: Load, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.measure.first_look.login_takes_s", lambda *_: takes_s)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    said: list[str] = []
    caller = Caller(said.append, lambda _: nullcontext())  # type: ignore[arg-type, return-value]
    found = _with_few_users(with_load(load), Catalogue.load(), caller, frozenset(), None)
    assert found.load.connections == users
    assert bool(said) == (users != load.connections)
