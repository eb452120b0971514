"""Reading what clients say about themselves."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import outputs
from rig import counts
from rig.clients import CLIENTS
from rig.counts import Counts
from rig.nginx import Counters, parse_status
from rig.process import BenchError

number = st.integers(min_value=0, max_value=10**12)


@pytest.mark.parametrize(
    ("read", "output", "expected"),
    [
        (counts.wrk, outputs.WRK, Counts(118045, 0)),
        (counts.wrk, outputs.WRK_IN_TROUBLE, Counts(1, 4321 + 1999)),
        (counts.ab, outputs.AB, Counts(125421, 0)),
        (counts.ab, outputs.AB_IN_TROUBLE, Counts(993, 12)),
        (counts.h2load, outputs.H2LOAD, Counts(80720, 0)),
        (counts.ghz, outputs.GHZ, Counts(390, 3)),
        (counts.hey, outputs.HEY, Counts(32087, 0)),
        (counts.hey, outputs.HEY_IN_TROUBLE, Counts(90, 12)),
        (counts.oha, outputs.OHA, Counts(1000, 6)),
        (counts.floor, '{"completed":159402,"measured_s":1.0}', Counts(159402, 0)),
    ],
)
def test_real_outputs(read: Callable[[str], Counts], output: str, expected: Counts) -> None:
    assert read(output) == expected


@given(completed=number, failures=st.dictionaries(st.text(min_size=1), number, max_size=5))
def test_loadgen_failures_of_all_kinds_count(completed: int, failures: dict[str, int]) -> None:
    output = json.dumps({"requests": {"completed": completed}, "failures": failures})
    assert counts.loadgen(output) == Counts(completed, sum(failures.values()))


@given(requests=number, errors=st.tuples(number, number, number, number))
def test_wrk_socket_errors_are_failures(requests: int, errors: tuple[int, int, int, int]) -> None:
    connect, read, write, timeout = errors
    output = (
        f"  {requests} requests in 2.00s, 1.00MB read\n"
        f"  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}\n"
    )
    assert counts.wrk(output) == Counts(requests, sum(errors))


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "hey"])
@given(output=st.text() | st.sampled_from(["{}", "[]", "null", '{"completed": "many"}']))
def test_foreign_output_is_an_error_for_people(client: str, output: str) -> None:
    with pytest.raises(BenchError):
        CLIENTS[client].counts(output)


def test_nginx_counters() -> None:
    assert parse_status(outputs.STATUS) == Counters(accepts=39441, requests=316805, active=64)


def test_nginx_page_that_is_none() -> None:
    with pytest.raises(BenchError, match="404"):
        parse_status("<h1>404 Not Found</h1>")
