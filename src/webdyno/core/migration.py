"""What older runs call otherwise: their keys under the names of today.

The only place that knows the older names. What was measured stays as it is. A run's folder may be
anybody's: what isn't a table where one should be is left to those who read it afterwards.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from webdyno.core.tables import is_table

Names = Mapping[str, str]
Migration = Callable[[JsonValue], JsonValue]

OLDEST_FORMAT = 3
"""Of run folders that can be read; what is older has to be measured again."""
OLD_RESULT = b'"schema":1,'
"""In records with a result of version 1 of the load engine's contract."""

OLD_BURSTS = b'"told":'
"""In records of pilot runs that tried a warm-up in bursts."""

LOAD: Names = {
    "due": "arrival_unit",
    "requests": "count",
    "send_lag_budget": "send_delay_budget_s",
}
FACTORS: Names = {f"load.{old}": f"load.{new}" for old, new in LOAD.items()}
CALIBRATION: Names = {"send_lag": "send_delay", "timer_lag": "timer_delay"}
RESULT: Names = {
    "lead_in_s": "ramp_up_s",
    "rate_rps": "throughput_rps",
    "response_time_us": "latency_us",
    "send_lag_us": "send_delay_us",
}
CLIENT: Names = {
    "left_out_windows": "excluded_windows",
    "still_windows": "stalled_windows",
    "stood_still_s": "stalled_s",
}
WINDOW: Names = {"lead_in": "ramp_up", "stood_still": "stalled"}
EVENTS: Names = {"answers": "responses", "per_answer": "per_response"}
BURSTS: Names = {"told": "summary"}
REQUESTED: Names = {"asked": "requested"}


RACES = ("ranking", "halving")
UNUSED: dict[str, object] = {
    "gate": None,
    "race": None,
    "interventions": {},
    "advice": {},
    "design": None,
}
"""Keys that were written whatever was asked, each with what it had where it asked nothing."""


def migrated_head(head: JsonValue) -> JsonValue:
    """Return the content of a `run.json` of format 3 in that of today."""
    return _change(
        head,
        format=lambda _: OLDEST_FORMAT + 1,
        experiment=_experiment,
        calibration=lambda old: _change(old, CALIBRATION, format=lambda _: 2),
    )


def migrated_experiment(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's data with the keys of questions as they are now."""
    data = {
        key: value for key, value in experiment.items() if key not in UNUSED or value != UNUSED[key]
    }
    if data.get("race") in RACES:
        data[data.pop("race")] = {}
    if "interventions" in data:
        data["limits"] = {"interventions": data.pop("interventions")}
    if is_table(advice := data.get("advice")) and "tried" not in advice:
        data["advice"] = {"tried": advice}
    measure = data.get("measure")
    if is_table(measure) and "question" in measure:
        # It said nothing where something else was asked.
        claim, others = measure["question"], {"gate", "limits", "advice", "design"}
        if claim is not None and not others & data.keys():
            data["one_sided"] = {"claim": claim}
        data["measure"] = {key: value for key, value in measure.items() if key != "question"}
    return data


def migrated_record(line: bytes) -> bytes:
    """Return a line of `slots.jsonl` in the format of today."""
    if OLD_RESULT not in line and OLD_BURSTS not in line:
        return line
    with suppress(ValueError):  # no JSON: who reads it as a record says so
        record = _change(from_json(line), load=_result, bursts=lambda old: _change(old, BURSTS))
        return to_json(record, inf_nan_mode="constants")
    return line


def _experiment(experiment: JsonValue) -> JsonValue:
    def load(old: JsonValue) -> JsonValue:
        return _change(old, LOAD)

    return _change(
        experiment,
        load=load,
        load_with=lambda old: _each(old, load),
        variants=lambda old: _each(old, lambda variant: _change(variant, load=load)),
        factors=lambda old: _change(old, FACTORS),
        capacity=load,
    )


def _result(result: JsonValue) -> JsonValue:
    return _change(
        result,
        RESULT,
        schema=lambda _: 2,
        client=lambda old: _change(old, CLIENT),
        windows=lambda old: _each(old, lambda window: _change(window, WINDOW)),
        endpoints=lambda old: _each(old, lambda endpoint: _change(endpoint, RESULT)),
        events=lambda old: _change(old, EVENTS),
        keepalive=lambda old: _change(old, REQUESTED),
        idle_connections=lambda old: _change(old, REQUESTED),
    )


def _change(table: JsonValue, names: Names | None = None, **changes: Migration) -> JsonValue:
    """Return a table with other names of keys, and with some of its values changed."""
    if not is_table(table):
        return table
    return {
        (names or {}).get(key, key): changes[key](value) if key in changes else value
        for key, value in table.items()
    }


def _each(several: JsonValue, change: Migration) -> JsonValue:
    """Return a table or list with each of its values changed."""
    if is_table(several):
        return {key: change(value) for key, value in several.items()}
    return [change(value) for value in several] if isinstance(several, list) else several
