"""What long looks see that isn't there, and what is: a smaller run of the simulation."""

import pytest

from judge.later_simulation import STEADY, THERE, Server, shares

LOOKS = 60
UNTOLD = ("noise that remembers 2 s", "memory like a logarithm")
"""More often than that: ten seconds are too short to tell these from what goes on."""


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in STEADY if name not in UNTOLD])
def test_steady_servers_are_accused_of_nothing(name: str) -> None:
    assert max(shares(STEADY[name], LOOKS).values()) <= 0.05


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("stalls of 50 ms every 2 s", "stalls"),
        ("drift of 10 %", "drift"),
        ("leak of 10 kB, 100 requests/s", "growth"),
        ("leak of 10 kB beside a neighbour", "growth"),
    ],
)
def test_what_is_there_is_seen(name: str, finding: str) -> None:
    assert shares(THERE[name], 15)[finding] >= 0.9


def test_what_a_neighbour_takes_is_no_drift() -> None:
    """Without its windows left out 5 % of looks had one."""
    assert shares(Server(neighbour="programs"), LOOKS, seed=1)["drift"] <= 0.02


def test_memory_that_fills_up_is_no_leak() -> None:
    """Most were told as leaks, before it was asked whether they grow ever less."""
    assert shares(STEADY["memory to a plateau"], 30)["growth"] == 0
