"""The texts of servers' status pages: as they come, and with anything else in their place."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.probes.status import (
    PARSERS,
    OwnCounts,
    fastcgi_output,
    parse_apache,
    parse_memcached,
    parse_nginx,
    parse_php_fpm,
    parse_redis,
    redis_complete,
)

COUNTS = st.integers(0, 2**63)
NGINX = """\
Active connections: 291
server accepts handled requests
 16630948 16630940 31070465
Reading: 6 Writing: 179 Waiting: 106
"""
APACHE = """\
127.0.0.1
ServerVersion: Apache/2.4.66 (Debian)
ParentServerConfigGeneration: 1
Load1: 0.53
BusyWorkers: 5
GracefulWorkers: 0
IdleWorkers: 251
ConnsTotal: 0
Scoreboard: ____W___.
"""
PHP_FPM = {
    "pool": "www",
    "process manager": "static",
    "accepted conn": 1203,
    "listen queue": 0,
    "max listen queue": 7,
    "listen queue len": 511,
    "idle processes": 12,
    "active processes": 4,
    "total processes": 16,
    "max active processes": 16,
    "max children reached": 0,
}
MEMCACHED = """\
STAT version 1.6.38
STAT cmd_get 60\r
STAT cmd_set 4\r
STAT get_hits 50\r
STAT get_misses 10\r
STAT total_connections 9\r
STAT rejected_connections 1\r
STAT rusage_user 0.056231\r
END\r
"""
REDIS = """\
$120\r
# Stats\r
total_connections_received:7\r
total_commands_processed:1234\r
instantaneous_input_kbps:0.04\r
rejected_connections:2\r
keyspace_hits:20\r
keyspace_misses:3\r
"""


def test_nginx_shows_what_it_accepted_and_did_not_handle() -> None:
    assert parse_nginx(NGINX) == OwnCounts(requests=31_070_465, connections=16_630_948, dropped=8)


def test_apache_counts_requests_only_with_extended_status() -> None:
    assert parse_apache(APACHE) == OwnCounts(busy=4, workers=256)
    extended = APACHE + "Total Accesses: 77\nTotal kBytes: 12\n"
    assert parse_apache(extended) == OwnCounts(requests=77, busy=4, workers=256)


def test_php_fpm_knows_its_queue_by_tcp_only() -> None:
    by_tcp = OwnCounts(requests=1203, busy=3, workers=16, most_busy=16, most_waiting=7)
    assert parse_php_fpm(json.dumps(PHP_FPM)) == by_tcp
    by_socket = parse_php_fpm(json.dumps(PHP_FPM | {"listen queue len": 0}))
    assert by_socket.most_waiting is None


def test_memcached_and_redis_report_hits_and_misses() -> None:
    assert parse_memcached(MEMCACHED) == OwnCounts(
        requests=64, connections=9, dropped=1, hits=50, misses=10
    )
    assert parse_redis(REDIS) == OwnCounts(
        requests=1234, connections=7, dropped=2, hits=20, misses=3
    )


@given(accepted=COUNTS, dropped=st.integers(0, 2**20), requests=COUNTS)
def test_whatever_nginx_counts_is_read(accepted: int, dropped: int, requests: int) -> None:
    text = NGINX.replace(
        "16630948 16630940 31070465", f"{accepted} {accepted - dropped} {requests}"
    )
    if dropped <= accepted:
        assert parse_nginx(text) == OwnCounts(
            requests=requests, connections=accepted, dropped=dropped
        )


@given(requests=COUNTS, busy=st.integers(1, 10_000), idle=st.integers(0, 10_000))
def test_whatever_apache_counts_is_read(requests: int, busy: int, idle: int) -> None:
    text = f"Total Accesses: {requests}\nBusyWorkers: {busy}\nIdleWorkers: {idle}\n"
    assert parse_apache(text) == OwnCounts(requests=requests, busy=busy - 1, workers=busy + idle)


@given(st.lists(COUNTS, min_size=4, max_size=4))
def test_whatever_php_fpm_counts_is_read(counts: list[int]) -> None:
    names = ("accepted conn", "active processes", "total processes", "max active processes")
    said = parse_php_fpm(json.dumps(PHP_FPM | dict(zip(names, counts, strict=True))))
    assert (said.requests, said.workers, said.most_busy) == (counts[0], counts[2], counts[3])


@pytest.mark.parametrize("kind", PARSERS)
@given(text=st.one_of(st.text(), st.sampled_from([NGINX, APACHE, json.dumps(PHP_FPM)])))
def test_any_text_is_read_or_refused(kind: str, text: str) -> None:
    with suppress(ValueError, KeyError):
        PARSERS[kind](text)  # type: ignore[index]


@pytest.mark.parametrize("kind", PARSERS)
@given(cut=st.integers(0, 200))
def test_a_page_that_was_cut_off_is_read_or_refused(kind: str, cut: int) -> None:
    pages = {
        "nginx": NGINX,
        "apache": APACHE,
        "php-fpm": json.dumps(PHP_FPM),
        "memcached": MEMCACHED,
        "redis": REDIS,
    }
    with suppress(ValueError, KeyError):
        PARSERS[kind](pages[kind][:cut])  # type: ignore[index]


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(0, 7)), max_size=5))
def test_fastcgi_records_are_put_together(parts: list[tuple[bytes, int]]) -> None:
    response = b"".join(
        bytes([1, 6, 0, 1, *len(part).to_bytes(2, "big"), padding, 0]) + part + bytes(padding)
        for part, padding in parts
    )
    assert fastcgi_output(response) == b"".join(part for part, _ in parts)


@given(st.binary(max_size=300))
def test_any_bytes_are_fastcgi_or_refused(response: bytes) -> None:
    with suppress(ValueError):
        assert len(fastcgi_output(response)) <= len(response)


@given(st.binary(max_size=300))
def test_a_bulk_string_is_complete_with_its_last_byte(text: bytes) -> None:
    whole = b"$%d\r\n%s\r\n" % (len(text), text)
    assert redis_complete(whole)
    assert not redis_complete(whole[:-1])
    assert redis_complete(b"-NOAUTH Authentication required.\r\n")
