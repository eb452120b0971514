"""What is read of servers in the course of a stretch of load."""

from webdyno.probes.slot import MOST_LOOKED_AT, in_turns


def test_a_server_behind_many_processes_of_another_service_is_looked_at() -> None:
    php, server = list(range(100, 117)), [7]
    assert 7 in in_turns([php, server])[:MOST_LOOKED_AT]
    assert sorted(in_turns([php, server])) == [7, *php]
