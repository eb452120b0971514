"""The split of CPUs keeps its promises on any machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.errors import UserError
from webdyno.host.machine import split_cpus


@st.composite
def machines(draw: st.DrawFn) -> tuple[set[int], list[list[int]]]:
    """Draw the CPUs that a process may use, and the cores of the machine."""
    threads = draw(st.integers(1, 4))
    count = draw(st.integers(1, 40))
    cores = [[core + thread * count for thread in range(threads)] for core in range(count)]
    everything = [cpu for core in cores for cpu in core]
    return draw(st.sets(st.sampled_from(everything), min_size=1)), cores


@given(machines())
def test_any_machine(machine: tuple[set[int], list[list[int]]]) -> None:
    allowed, cores = machine
    split = split_cpus(allowed, cores)
    servers, client, rest = set(split.servers), set(split.client), set(split.rest)
    assert servers | client | rest == allowed
    if split.shared:
        assert servers == client == rest
        assert sum(bool(allowed.intersection(core)) for core in cores) == 1
        return
    assert servers
    assert client
    assert rest
    for core in cores:  # the threads of one core never end up on both sides
        assert not (servers.intersection(core) and client.intersection(core))
        assert not (servers.intersection(core) and rest.intersection(core))


@given(machines())
def test_the_client_has_as_many_cores_as_the_servers_or_one_more(
    machine: tuple[set[int], list[list[int]]],
) -> None:
    allowed, cores = machine
    split = split_cpus(allowed, cores)

    def used(cpus: list[int]) -> int:
        return sum(bool(set(core).intersection(cpus)) for core in cores)

    assert used(split.client) - used(split.servers) in {0, 1}


@pytest.mark.parametrize(
    ("count", "servers", "client", "rest"),
    [
        (2, [0], [1], [1]),
        (3, [0], [1, 2], [1, 2]),
        (4, [0, 1], [2, 3], [2, 3]),
        (5, [0, 1], [2, 3, 4], [2, 3, 4]),
        (6, [1, 2], [3, 4, 5], [0]),
        (8, [1, 2, 3], [4, 5, 6, 7], [0]),
    ],
)
def test_usual_machines(count: int, servers: list[int], client: list[int], rest: list[int]) -> None:
    split = split_cpus(range(count), [[cpu] for cpu in range(count)])
    assert (split.servers, split.client, split.rest) == (servers, client, rest)


def test_the_servers_get_as_many_cores_as_asked_for() -> None:
    split = split_cpus(range(8), [[cpu, cpu + 4] for cpu in range(4)], server_cores=1)
    assert (split.servers, split.client) == ([0, 4], [1, 2, 3, 5, 6, 7])


def test_the_client_keeps_a_core() -> None:
    with pytest.raises(UserError, match="leave the client none"):
        split_cpus(range(2), [[0], [1]], server_cores=2)


def test_one_cpu_has_to_do_for_all() -> None:
    split = split_cpus([3], [])
    assert split.shared
    assert split.servers == split.client == split.rest == [3]


def test_two_threads_of_one_core_are_shared() -> None:
    assert split_cpus([0, 1], [[0, 1]]).shared
