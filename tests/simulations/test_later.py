"""What long looks see that isn't there, and what is: a smaller run of the simulation."""

import pytest

from simulations.later import STEADY, THERE, Server, shares

LOOKS = 60


@pytest.mark.long
@pytest.mark.parametrize("name", STEADY)
def test_steady_servers_are_accused_of_nothing(name: str) -> None:
    assert max(shares(STEADY[name], LOOKS).values()) <= 0.05


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("stalls of 50 ms every 2 s", "stalls"),
        ("a second at 40% every 6 s", "slow"),
        ("leak of 10 kB, 100 req/s", "growth"),
        ("leak of 10 kB beside a neighbor", "growth"),
    ],
)
def test_what_is_there_is_seen(name: str, warning: str) -> None:
    assert shares(THERE[name], 15)[warning] >= 0.9


def test_what_a_neighbour_takes_is_no_drift() -> None:
    """Without its windows excluded 5% of looks had one."""
    assert shares(Server(neighbour="programs"), LOOKS, seed=1)["drift"] <= 0.02


def test_what_a_neighbour_takes_isnt_slow() -> None:
    """Every sixth look had a slow stretch that was held against what is taken on average."""
    assert shares(Server(neighbour="programs"), LOOKS, seed=1)["slow"] <= 0.02


def test_memory_like_a_logarithm_is_no_leak() -> None:
    """Every fourth look reported a leak, before the second quarter was asked as well."""
    assert shares(STEADY["memory like a logarithm"], LOOKS)["growth"] <= 0.02


def test_a_drift_is_seen() -> None:
    assert shares(THERE["drift of 10%"], LOOKS)["drift"] >= 0.75


def test_memory_that_fills_up_is_no_leak() -> None:
    """Most were reported as leaks, before it was asked whether they grow ever less."""
    assert shares(STEADY["memory to a plateau"], 30)["growth"] == 0
