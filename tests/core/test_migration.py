"""Runs of older versions: what they call otherwise has the names of today, and the same figures."""

import json

from pydantic import JsonValue

from builders import load_result
from webdyno.core.load_result import LoadResult, Window
from webdyno.core.migration import migrated_head, migrated_record

OLD_RESULT = {
    "schema": 1,
    "target": "http://127.0.0.1:8080",
    "loop": "open",
    "lead_in_s": 0.5,
    "measured_s": 2.0,
    "requests": {"completed": 100},
    "by_status": {"200": 100},
    "failures": {},
    "keepalive": {"asked": "always"},
    "idle_connections": {"asked": 5, "held": 4},
    "rate_rps": 50.0,
    "offered_rps": 51.0,
    "response_time_us": {"p50": 120.0},
    "send_lag_us": {"budget": 200.0, "p99": 90.0},
    "client": {
        "threads": 1,
        "cpu_user_s": 0.1,
        "cpu_sys_s": 0.2,
        "busy": 0.15,
        "stood_still_s": 0.04,
        "still_windows": 1,
        "left_out_windows": 1,
    },
    "windows": [
        {"at_s": 0, "length_s": 0.5, "completed": 9, "lead_in": True},
        {"at_s": 0.5, "length_s": 2.0, "completed": 100, "stood_still": True},
    ],
    "endpoints": [
        {"endpoint": "/a", "completed": 9, "failed": 0, "rate_rps": 4.5, "response_time_us": {}}
    ],
    "events": {"answers": 3, "per_answer": 4.0},
}


def line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def test_a_result_of_version_1_has_the_names_of_today() -> None:
    record = json.loads(migrated_record(line({"kind": "slot", "load": OLD_RESULT, "round": 3})))
    assert (record["kind"], record["round"]) == ("slot", 3)
    found = LoadResult.model_validate_json(json.dumps(record["load"]))
    assert (found.ramp_up_s, found.throughput_rps, found.offered_rps) == (0.5, 50.0, 51.0)
    assert (found.latency_us.p50, found.send_delay_us.p99) == (120.0, 90.0)
    assert found.keepalive.requested == "always"
    assert found.idle_connections
    assert found.idle_connections.requested == 5
    assert (found.client.stalled_s, found.client.stalled_windows) == (0.04, 1)
    assert found.client.excluded_windows == 1
    assert found.windows == [
        Window(at_s=0, length_s=0.5, completed=9, ramp_up=True),
        Window(at_s=0.5, length_s=2.0, completed=100, stalled=True),
    ]
    assert found.endpoints[0].throughput_rps == 4.5
    assert found.events
    assert (found.events.responses, found.events.per_response) == (3, 4.0)


def test_an_old_look_at_bursts_has_a_summary() -> None:
    old = line({"kind": "pilot", "bursts": {"bursts": [], "told": "it is faster"}})
    assert json.loads(migrated_record(old))["bursts"] == {"bursts": [], "summary": "it is faster"}


def test_lines_of_today_and_damaged_ones_stay_as_they_are() -> None:
    today = b'{"kind":"slot","load":' + load_result().model_dump_json().encode() + b"}"
    deep = b'{"load":{"schema":1,"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}}"
    for text in (today, b'{"load":{"schema":1,"lead', deep, b'["schema":1,]'):
        assert migrated_record(text) == text


def test_an_old_head_has_the_names_of_today_in_all_its_loads() -> None:
    old: JsonValue = {
        "format": 3,
        "experiment": {
            "title": "t",
            "load": {"due": "connection", "requests": None, "send_lag_budget": 0.0002, "zipf": 1},
            "load_with": {"ab": {"requests": 500}},
            "variants": {"a": {"stack": "nginx", "load": {"due": "request"}}, "b": {"stack": "c"}},
            "factors": {"load.due": ["request"], "load.zipf": [1, 2]},
            "capacity": {"send_lag_budget": 0.001},
        },
        "calibration": {"format": 1, "send_lag": {"p50_us": 1}, "timer_lag": {"p50_us": 2}},
    }
    assert migrated_head(old) == {
        "format": 4,
        "experiment": {
            "title": "t",
            "load": {
                "arrival_unit": "connection",
                "count": None,
                "send_delay_budget_s": 0.0002,
                "zipf": 1,
            },
            "load_with": {"ab": {"count": 500}},
            "variants": {
                "a": {"stack": "nginx", "load": {"arrival_unit": "request"}},
                "b": {"stack": "c"},
            },
            "factors": {"load.arrival_unit": ["request"], "load.zipf": [1, 2]},
            "capacity": {"send_delay_budget_s": 0.001},
        },
        "calibration": {"format": 2, "send_delay": {"p50_us": 1}, "timer_delay": {"p50_us": 2}},
    }


def test_what_is_no_head_is_left_to_its_reader() -> None:
    damaged: list[JsonValue] = [None, [], {"format": 3, "experiment": 5, "calibration": [1]}]
    for odd in damaged:
        migrated_head(odd)
