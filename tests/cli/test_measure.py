"""What is asked before a run begins."""

from collections.abc import Sequence

import pytest

from webdyno.cli import measure
from webdyno.cli.duel import AskedFlags, arranged
from webdyno.cli.experiment_flags import ExperimentFlags, SetupFlags, TrafficFlags
from webdyno.cli.flags import NewRunFlags, RunFlags
from webdyno.definitions import Catalogue, CommandLine, read_experiment
from webdyno.model.mistake import Mistake
from webdyno.model.stack import Site, Stack

VARIED = {
    "title": "t",
    "question": "q",
    "site": "static",
    "arms": {"a": {"stack": "nginx"}, "b": {"stack": "nginx-phpfpm"}},
    "factors": {
        "arms.a.stack": ["nginx", "lighttpd"],
        "arms.b.site": ["static", "hello-php"],
        "arms.b.stack": ["nginx-phpfpm", "caddy"],
    },
}


def test_a_yes_is_asked_for_what_runs_at_any_point(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    def refuse(stacks: Sequence[Stack], sites: Sequence[Site], _: object, *, yes: bool) -> None:
        asked.extend([{each.name for each in stacks}, {each.name for each in sites}])
        raise Mistake(f"nobody agreed, yes={yes}")

    monkeypatch.setattr(measure, "provide_packages", refuse)
    catalogue = Catalogue.load()
    experiment = read_experiment(CommandLine(VARIED, {}), [], catalogue)
    with pytest.raises(Mistake, match="nobody agreed, yes=False"):
        measure.measure("name", experiment, catalogue, None, RunFlags())
    assert asked == [{"nginx", "lighttpd", "nginx-phpfpm", "caddy"}, {"static", "hello-php"}]


def test_the_question_of_a_duel_names_what_asks() -> None:
    traffic = TrafficFlags(curl=["curl http://127.0.0.1/hello.txt"])
    asked = AskedFlags(flags=ExperimentFlags(setup=SetupFlags(traffic=traffic)))
    _, experiment, _ = arranged(["nginx", "apache-event"], asked, NewRunFlags())
    assert (
        experiment.question == "How does apache-event compare with nginx at what --curl asks for?"
    )
    _, experiment, _ = arranged(["nginx", "apache-event"], AskedFlags(), NewRunFlags())
    assert experiment.question.endswith("at /hello.txt of static?")
