"""Heads of runs of others: whatever is in them, they are read in little time and memory."""

import time
import tomllib

import pytest
from pydantic import ValidationError

from builders import run_head
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.patterns import MOST_IGNORED
from webdyno.core.request import WrittenRequest
from webdyno.core.run import RunHead
from webdyno.core.session import Capture, Values
from webdyno.core.sweep import plan_points
from webdyno.core.variant import Variant
from webdyno.questions.compare.settings import OneSidedSettings


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
    asked = WrittenRequest(path="/", method="POST", json=body)  # type: ignore[call-arg]
    experiment = read(requests=[asked], login=[asked], load=Load()).experiment
    again = Experiment.model_validate(tomllib.loads(experiment.toml()))
    for request in (*again.requests, *again.login):
        assert request.content({}) == asked.content({})
        assert request.sent_headers == asked.sent_headers


def test_nulls_of_a_call_are_what_it_has_anyway() -> None:
    asked = WrittenRequest(method="a.B/C", json={"a": None, "b": 1})  # type: ignore[call-arg]
    assert asked.without_nulls.call_json == '{"b": 1}'


def test_points_share_what_no_factor_changes() -> None:
    """Else a small head with many points and requests would take gigabytes."""
    requests = [WrittenRequest(path=f"/{number}") for number in range(20)]
    varied = {"load.connections": [1, 2], "variants.nginx.settings.workers": [1, 2, 3]}
    experiment = read(requests=requests, load=Load(), factors=varied, workload={"a": 1}).experiment
    plans = plan_points(experiment)
    assert [plan.experiment.load.connections for plan in plans] == [1, 1, 1, 2, 2, 2]
    assert [plan.experiment.settings_of("nginx")["workers"] for plan in plans] == [1, 2, 3] * 2
    other = next(name for name in experiment.variants if name != "nginx")
    assert plan_points(plans[0].experiment)[0].experiment == plans[0].experiment
    for plan in plans:
        assert plan.experiment.factors == {}
        assert plan.experiment.requests is experiment.requests
        assert plan.experiment.workload is experiment.workload
        assert plan.experiment.variants[other] is experiment.variants[other]


def test_a_factor_may_be_a_key_of_a_question() -> None:
    asks = OneSidedSettings(claim="faster")
    varied = {"one_sided.claim": ["faster", "not-slower-by 5%"]}
    plans = plan_points(run_head().experiment.replace(asks=asks, factors=varied))
    claims = [plan.experiment.asks_as(OneSidedSettings).claim for plan in plans]
    assert claims == ["faster", "not-slower-by 5%"]


@pytest.mark.parametrize(
    "keys",
    [
        {"requests": [WrittenRequest(path="/")] * 3_000, "load": Load()},
        {"login": [WrittenRequest(path="/")] * 3_000},
        {"load": Load(paths=["/"] * 3_000)},
        {"workload": {"a": [[1]] * 3_000}},
        {"values": {"a": Values(rows=[{"a": "1"}] * 3_000)}},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_many_points_have_few_requests(keys: dict[str, object]) -> None:
    read(**keys)
    with pytest.raises(ValidationError, match="1,000 combinations of levels and"):
        read(**keys, factors={"load.connections": list(range(1, 1001))})


def test_each_step_of_a_login_is_looked_at_once() -> None:
    steps = [
        WrittenRequest(path="/{{t}}", capture={f"a{number}": Capture(css="a")})
        for number in range(2_000)
    ]
    steps[0] = WrittenRequest(path="/", capture={"t": Capture(css="a")})
    requests = [WrittenRequest(path=f"/{each}/{{1..2}}") for each in range(2_000)]
    began = time.process_time()
    read(login=steps, requests=requests, load=Load())
    assert time.process_time() - began < 2
