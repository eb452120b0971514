"""What is asked before a run begins."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from builders import run_head
from webdyno.config import Catalogue, CommandLine, Override, read_experiment
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.stack import Site, Stack
from webdyno.interfaces.cli.experiment_flags import (
    AskedFlags,
    ExperimentFlags,
    SetupFlags,
    TrafficFlags,
)
from webdyno.interfaces.cli.flags import RunFlags, settings_of
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch import measure
from webdyno.launch.arrangement import AskedSystems, arrange, race_of
from webdyno.launch.caller import Caller
from webdyno.measure.session import with_seed
from webdyno.questions.compare.command import REST_S, CostFlags, PaceFlags

CALLER = at_terminal(RunFlags())
VARIED = {
    "title": "t",
    "question": "q",
    "site": "static",
    "variants": {"a": {"stack": "nginx"}, "b": {"stack": "nginx-phpfpm"}},
    "factors": {
        "variants.a.stack": ["nginx", "lighttpd"],
        "variants.b.site": ["static", "hello-php"],
        "variants.b.stack": ["nginx-phpfpm", "caddy"],
    },
}


def test_a_yes_is_asked_for_what_runs_at_any_point(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    def refuse(stacks: Sequence[Stack], sites: Sequence[Site], _: object, caller: Caller) -> None:
        asked.extend([{each.name for each in stacks}, {each.name for each in sites}])
        raise UserError(f"nobody agreed, yes={caller.yes}")

    monkeypatch.setattr(measure, "provide", refuse)
    catalogue = Catalogue.load()
    experiment = read_experiment(CommandLine(VARIED, {}), [], catalogue)
    with pytest.raises(UserError, match="nobody agreed, yes=False"):
        measure.measure_again("name", experiment, catalogue, None, CALLER)
    assert asked == [{"nginx", "lighttpd", "nginx-phpfpm", "caddy"}, {"static", "hello-php"}]


def test_a_load_generator_says_its_biases_before_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "provide", lambda *_: None)
    variants = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
    asked = {"title": "t", "question": "q", "site": "static", "variants": variants}
    catalogue = Catalogue.load()
    for generator, reported in (("wrk", True), ("loadgen", False)):
        experiment = read_experiment(
            CommandLine({**asked, "generator": generator}, {}), [], catalogue
        )
        measure._provide(experiment, catalogue, tmp_path, CALLER)
        assert ("a closed loop waits for slow responses" in capsys.readouterr().err) is reported


def test_the_question_of_a_duel_names_what_asks() -> None:
    traffic = TrafficFlags(traffic=["curl http://127.0.0.1/hello.txt"])
    asked = AskedFlags(flags=ExperimentFlags(setup=SetupFlags(traffic=traffic)))
    systems, catalogue = ["nginx", "apache-event"], Catalogue.load()
    _, experiment, _ = arrange(systems, asked.read(), catalogue, CALLER)
    assert experiment.question.endswith("compare with nginx at what --traffic curl … asks for?")
    _, experiment, _ = arrange(systems, AskedFlags().read(), catalogue, CALLER)
    assert experiment.question.endswith("at /hello.txt of the site static?")


def test_a_league_of_stacks_as_they_are_is_asked_for_without_its_folder() -> None:
    stacks = ["express", "bun", "deno"]
    head = run_head({name: name for name in stacks})
    asked = AskedSystems(site="json").with_time_s(900)
    _, league, _ = arrange(stacks, asked, Catalogue.load(), CALLER, race_of(stacks))
    reported = head.replace(experiment=with_seed(league)).command_elsewhere
    assert reported == "webdyno compare express bun deno --site json --path /json --time 900s"
    other = Override(("load", "connections"), 8, "--set load.connections=8")
    asked = AskedSystems(site="json", overrides=[other])
    _, league, _ = arrange(stacks, asked, Catalogue.load(), CALLER, race_of(stacks))
    assert head.replace(experiment=league).command_elsewhere is None
    assert head.command_elsewhere is None


@pytest.mark.parametrize(
    ("rate", "asked", "factors"),
    [("2000", 2_000, {}), ("500, 2000", 500, {"load.rate_per_s": [500, 2_000]})],
)
def test_a_rate_asks_for_costs_in_an_open_loop(
    rate: str, asked: float, factors: dict[str, list[int]]
) -> None:
    flags = list(CostFlags(rate=rate, idle=True).overrides())
    systems = ["nginx", "apache-event"]
    _, experiment, _ = arrange(systems, AskedFlags().read(flags), Catalogue.load(), CALLER)
    assert (experiment.load.loop, experiment.load.rate_per_s) == ("open", asked)
    assert experiment.factors == factors
    assert experiment.measure.decide_on == "server_cpu_us"
    assert experiment.measure.rest_s == REST_S


def test_no_rate_leaves_the_load_as_it_is() -> None:
    assert list(CostFlags().overrides()) == []
    assert list(settings_of(PaceFlags())) == []


def paced(costs: CostFlags, pace: PaceFlags) -> Experiment:
    """The experiment that `compare` makes of such flags."""
    asked = AskedFlags().read([*costs.overrides(), *settings_of(pace)])
    _, experiment, _ = arrange(["nginx", "apache-event"], asked, Catalogue.load(), CALLER)
    return experiment


def test_paces_are_keys_of_the_load() -> None:
    load = paced(CostFlags(rate_per_conn="2"), PaceFlags(burst="5", kernel_times=True)).load
    assert (load.loop, load.rate_per_connection, load.burst) == ("open", 2, 5)
    assert load.offered_rps == 2 * 64
    assert load.kernel_times
    ramped = paced(CostFlags(), PaceFlags(conn_ramp="1500ms")).load
    assert (ramped.loop, ramped.connection_ramp_s) == ("closed", 1.5)
    varied = paced(CostFlags(rate_per_conn="1,2"), PaceFlags())
    assert varied.factors == {"load.rate_per_connection": [1, 2]}


@pytest.mark.parametrize(
    ("costs", "pace", "says"),
    [
        (CostFlags(rate="9", rate_per_conn="2"), PaceFlags(), "both give the rate"),
        (CostFlags(), PaceFlags(burst="50"), r'--burst 50.*burst needs loop = "open"'),
        (CostFlags(rate="100"), PaceFlags(burst="x"), "should be a whole number, not 'x'"),
        (CostFlags(rate="100"), PaceFlags(conn_ramp="5s"), 'needs loop = "closed"'),
        (CostFlags(), PaceFlags(conn_ramp="soon"), "should look like"),
        (CostFlags(rate="2"), PaceFlags(burst="50"), "come every 25 s"),
    ],
)
def test_paces_that_do_not_fit_are_refused(costs: CostFlags, pace: PaceFlags, says: str) -> None:
    with pytest.raises(UserError, match=says):
        paced(costs, pace)
