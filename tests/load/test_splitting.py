"""One slot's work shared out among several clients."""

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from webdyno.core.errors import UserError
from webdyno.core.load import Load, SlowReaders
from webdyno.core.replay import Replay
from webdyno.load.interface import Expectation, LoadOrder, Request, Share
from webdyno.load.loadgen import order_json
from webdyno.load.split_and_merge import split_order

ORDER_SCHEMA = Path(__file__).parents[2] / "loadgen/schema/order.v2.schema.json"
SHARED = Load(loop="open", rate_per_s=1000, connections=7)


def order(load: Load, **changes: object) -> LoadOrder:
    """A slot of two seconds, with such changes."""
    whole = LoadOrder("a slot", "http://127.0.0.1", (Request("/", Expectation(200)),), load, 2.0)
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


numbers = st.integers(0, 100)


@given(
    clients=st.integers(1, 9), more=numbers, idle=numbers, slow=st.integers(1, 100), count=numbers
)
def test_parts_add_up_and_differ_by_one_at_most(
    clients: int, more: int, idle: int, slow: int, count: int
) -> None:
    readers = SlowReaders(connections=slow, bytes_per_s=100)
    load = Load(connections=clients + more, idle_connections=idle, slow_readers=readers)
    parts = split_order(order(load, count=clients + count), clients)
    for of_all, of_parts in [
        (clients + more, [it.load.connections for it in parts]),
        (idle, [it.load.idle_connections for it in parts]),
        (slow, [it.load.slow_readers.connections if it.load.slow_readers else 0 for it in parts]),
        (clients + count, [it.count or 0 for it in parts]),
    ]:
        assert sum(of_parts) == of_all
        assert max(of_parts) - min(of_parts) <= 1
        assert len(of_parts) == clients


def test_who_has_received_a_broadcast_is_known_to_one_client() -> None:
    whole = order(Load(broadcast=True), count=None)
    assert split_order(whole, 1)
    with pytest.raises(UserError, match=r"load\.broadcast: one client"):
        split_order(whole, 2)


def test_all_clients_draw_one_timetable_and_offer_it_together() -> None:
    whole = order(SHARED, seed=5)
    parts = split_order(whole, 3)
    assert [it.share for it in parts] == [Share(3, index) for index in range(3)]
    assert sum(it.offered_rps() or 0 for it in parts) == pytest.approx(whole.offered_rps())
    for index, part in enumerate(map(order_json, parts)):
        Draft202012Validator(json.loads(ORDER_SCHEMA.read_text())).validate(part)
        assert part["load"]["arrivals"]["share"] == {"of": 3, "index": index, "seed": 5}
        assert part["load"]["arrivals"]["stages"] == [{"rate_per_s": 1000}]
    assert "share" not in order_json(whole)["load"]["arrivals"]


def test_rates_of_connections_add_up_and_no_two_have_one_timetable() -> None:
    load = Load(loop="open", rate_per_connection=2, connections=7)
    whole = order(load, seed=5)
    parts = split_order(whole, 3)
    assert sum(part.offered_rps() or 0 for part in parts) == whole.offered_rps() == 14
    orders = [order_json(part) for part in parts]
    assert all("share" not in part["load"]["arrivals"] for part in orders)
    assert all(part["load"]["arrivals"]["each_connection"] for part in orders)
    seeds = [
        each["seed"] + number for each in orders for number in range(each["load"]["connections"])
    ]
    assert len(set(seeds)) == 7


def test_clients_of_a_closed_loop_need_no_timetable_but_choose_for_themselves() -> None:
    parts = [order_json(it) for it in split_order(order(Load(connections=4, think_s=0.1)), 2)]
    assert all("arrivals" not in it["load"] for it in parts)
    assert [it["seed"] for it in parts] == [0, 1]
    assert split_order(order(Load()), 2)[0].offered_rps() is None


def test_a_count_of_an_open_loop_is_of_the_timetable_that_all_share() -> None:
    assert [it.count for it in split_order(order(SHARED, count=9), 2)] == [9, 9]


@given(
    gaps=st.lists(st.integers(0, 50_000), min_size=2, max_size=60).filter(any),
    clients=st.integers(1, 5),
    begin=st.floats(0, 0.99),
)
def test_a_replay_is_taken_in_turns_and_lasts_for_everybody(
    gaps: list[int], clients: int, begin: float
) -> None:
    times_s = [sum(gaps[:end]) / 1e6 for end in range(1, len(gaps) + 1)]
    log = Replay(times_s, list(range(len(gaps))))
    stretch = log.stretch(begin, 2.0, 20.0)
    whole = order(SHARED, replay=stretch)
    parts = split_order(whole, clients)
    replays = [it.replay for it in parts if it.replay is not None]
    assert len(replays) == clients
    own = [list(zip(it.times_s, it.numbers, strict=True)) for it in replays]
    *asked, after = zip(stretch.times_s, stretch.numbers, strict=True)
    assert sorted(it for mine in own for it in mine[:-1]) == sorted(asked)
    assert all(mine[-1] == after and sorted(mine, key=lambda it: it[0]) == mine for mine in own)
    assert sum(it.offered_rps() or 0 for it in parts) == pytest.approx(whole.offered_rps())
    assert order_json(parts[0])["load"]["arrivals"] == {"times_s": replays[0].times_s}


@pytest.mark.parametrize(
    ("whole", "key"),
    [
        (order(Load(connections=2)), "load.connections = 2"),
        (order(Load(connections=9), count=2), "load.count = 2"),
    ],
)
def test_a_client_without_work_is_a_mistake(whole: LoadOrder, key: str) -> None:
    with pytest.raises(UserError, match=f"{key} .* 3 client hosts"):
        split_order(whole, 3)
