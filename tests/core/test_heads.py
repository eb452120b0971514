"""Heads of runs of others: whatever is in them, they are read in little time and memory."""

import tomllib

import pytest
from pydantic import ValidationError

from builders import run_head
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.patterns import MOST_IGNORED
from webdyno.core.request import WrittenRequest
from webdyno.core.run import RunHead
from webdyno.core.variant import Variant


def read(**changes: object) -> RunHead:
    """Read a head whose experiment has these keys."""
    head = run_head()
    changed = head.experiment.replace(**changes)
    return RunHead.model_validate_json(head.replace(experiment=changed).model_dump_json())


def test_patterns_are_few_and_not_looked_at_in_each_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 1,000 letters can take a tenth of a second."""
    monkeypatch.delattr("regex.compile")
    assert read(ignore=["("] * MOST_IGNORED)
    with pytest.raises(ValidationError, match="at most 100 items"):
        read(ignore=["a"] * (MOST_IGNORED + 1))


@pytest.mark.parametrize("value", [{"a": None}, {"a": [{"b": None}]}])
def test_no_table_that_takes_any_key_has_what_toml_has_not(value: dict[str, object]) -> None:
    for keys in (
        {"workload": value},
        {"load_with": {"ab": value}},
        {"variants": {"a": Variant(stack="nginx").replace(load=value)}},
        {"variants": {"a": Variant(stack="nginx").replace(testbed=value)}},
    ):
        with pytest.raises(ValidationError, match="holds a null"):
            read(**keys)


@pytest.mark.parametrize("body", [{"a": None}, [None, {"b": [1, None]}], {"a": 1}, "é"])
def test_a_body_with_nulls_is_the_same_in_the_file_that_repeats_a_run(body: object) -> None:
    asked = WrittenRequest(path="/", method="POST", json=body)  # type: ignore[arg-type]
    experiment = read(requests=[asked], login=[asked], load=Load()).experiment
    again = Experiment.model_validate(tomllib.loads(experiment.toml()))
    for request in (*again.requests, *again.login):
        assert request.content({}) == asked.content({})
        assert request.sent_headers == asked.sent_headers


def test_nulls_of_a_call_are_what_it_has_anyway() -> None:
    asked = WrittenRequest(method="a.B/C", json={"a": None, "b": 1})  # type: ignore[call-arg]
    assert asked.without_nulls.call_json == '{"b": 1}'
