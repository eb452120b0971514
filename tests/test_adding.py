"""What can be added in one place is added here, and used: nothing else has to know of it."""

import re
import sys
from collections.abc import Iterator, Sequence
from csv import DictReader
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Annotated
from urllib.request import urlopen

import pytest

import webdyno.load
from builders import SimulatedVariant, simulated_run
from report import questions, runs
from report.in_terminal import in_terminal
from webdyno.comparison import judge, judge_sweep
from webdyno.config import Catalogue, CommandLine, Draft, Override, read_overrides
from webdyno.core.errors import UserError
from webdyno.core.judgement import Judgement, Metric, Verdict
from webdyno.core.load import Load
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.evidence.point_data import PointData, RunData
from webdyno.host.this_machine import Testbed
from webdyno.interfaces.cli.flags import Sets, flag, settings_of
from webdyno.load.interface import Expectation, LoadOrder, Request, program, programs
from webdyno.media.document import Paragraph, Section
from webdyno.questions.gate import ci as gate_ci
from webdyno.questions.gate import show as gate
from webdyno.questions.gate.comment import gate_markdown
from webdyno.report import point_facts
from webdyno.report.brief import brief, in_full, summary
from webdyno.report.exports import summary_csv
from webdyno.report.result_page import html_page
from webdyno.report.show import PointView, RunView, Show
from webdyno.report.view import SHOWS, run_view
from webdyno.servers.starting import open_stack
from webdyno.systems import command, layouts
from webdyno.systems.kinds import KINDS, OwnKind
from webdyno.systems.layouts.app import FoundApp, Layout
from webdyno.systems.target import GeneratedService, TargetSpec
from webdyno.systems.variants import resolve
from webdyno.validity import SLOT_RULES
from webdyno.validity.rule import INTERFERENCE_TOLERATED, SlotRule

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
THREADS = MetricRule(
    Metric(name="threads", label="threads of the servers", unit="threads", better="lower"),
    kind="memory",
    round_value=lambda slots: float(len(slots)),
    short="threads",
)


def test_a_metric(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(METRICS, "threads", THREADS)
    run = simulated_run(VARIANTS, rounds=6)
    measure = Measure(seed=1, decide_on="threads")
    experiment = run.head.experiment.model_copy(update={"measure": measure})
    head = run.head.model_copy(update={"experiment": experiment})

    judgement = judge(PointData.of(head, run.records))
    assert judgement.verdict is Verdict.EQUIVALENT
    assert judgement.headline.startswith("equivalent: apache has 1.00× the threads of nginx")
    assert "threads" in [metric.name for metric in judgement.metrics]

    view = run_view(RunData(head, run.records), judge_sweep(RunData(head, run.records)))
    for medium, text in media_of(view, tmp_path).items():
        assert "threads of the servers" in text.casefold(), medium
    rows = list(DictReader(StringIO(summary_csv(view))))
    assert {row["unit"] for row in rows if row["metric"] == "threads"} == {"threads", "ratio"}


def test_a_metric_next_to_the_deciding_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(METRICS, "threads", THREADS)
    run = simulated_run(VARIANTS, rounds=6)
    view = run_view(run.whole, judge_sweep(run.whole))
    rows = [line for line in in_terminal(brief(view), 80).splitlines() if "Threads" in line]
    assert len(rows) == 1, rows
    assert re.search(r"Threads of the servers.* 1\.00", rows[0])
    for medium, text in media_of(view, tmp_path).items():
        assert "threads of the servers" in text.casefold(), medium


def media_of(view: RunView, folder: Path) -> dict[str, str]:
    """An answer as people read it."""
    return {
        "terminal": in_terminal(brief(view), 80),
        "verbose": in_terminal(in_full(view), 80),
        "Markdown": summary(view),
        "page": html_page(folder, view),
    }


def test_a_line_of_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    weather = [("Weather", "sunny, 21 °C")]
    monkeypatch.setattr(point_facts, "FACTS", [*point_facts.FACTS, lambda _: weather])
    run = simulated_run(VARIANTS, rounds=6)
    for medium, text in media_of(run_view(run.whole, judge_sweep(run.whole)), tmp_path).items():
        assert "Weather" in text, medium
        assert "sunny, 21 °C" in text, medium


class WeatherShow(Show):
    """What a question might add."""

    def found(self, point: PointView) -> Iterator[Section]:
        yield Section("Weather", [Paragraph(f"sunny over {point.data.head.experiment.title}")])

    def confidence(self, judged: Judgement) -> str | None:
        return "High in summer" if judged.rounds else None


def test_what_a_question_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("webdyno.report.view.SHOWS", [*SHOWS, WeatherShow()])
    run = simulated_run(VARIANTS, rounds=6)
    media = media_of(run_view(run.whole, judge_sweep(run.whole)), tmp_path)
    for medium, text in media.items():
        assert f"sunny over {run.head.experiment.title}" in text, medium
    assert "High in summer" in media["page"]


def test_a_line_of_a_gate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    weather = [("Weather", "sunny, 21 °C")]
    monkeypatch.setattr(gate, "FACTS", [*gate.FACTS, lambda _: weather])
    view = runs.seen(questions.gated())
    assert isinstance(view.whole, gate.GateWhole)
    formats = {
        "gate.md": gate_markdown,
        "JUnit": gate_ci.junit,
        "GitHub": gate_ci.annotations,
    }
    made = {name: make(view.whole.gate) for name, make in formats.items()}
    for medium, text in (media_of(view, tmp_path) | made).items():
        assert "sunny, 21 °C" in text, medium


THIRD = SlotRule(
    name="third-round",
    broken=lambda slot: slot.round == 3,
    what=lambda slots: f"{len(slots)} slots are of the third round",
    fix="Measure anything but a third round.",
    tolerated=INTERFERENCE_TOLERATED,
)


def test_a_rule_of_validity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLOT_RULES, THIRD.name, THIRD)
    run = simulated_run(VARIANTS, rounds=8)
    judgement = judge(run.data)
    assert {(it.rule, it.severity) for it in judgement.warnings} == {(THIRD.name, "note")}
    assert {it.round for it in judgement.excluded} == {3}
    view = run_view(run.whole, judge_sweep(run.whole))
    assert "slots are of the third round" in " ".join(str(view.points[0].judgement).split())


SLOTH = '''
"""A load generator that asks once a second, written for a test."""

from collections.abc import Sequence

from webdyno.load.instrument import Done, Instrument, only_closed
from webdyno.load.interface import LoadOrder
from webdyno.core.load import Load
from webdyno.core.load_result import Failures, KeepAliveResult, LoadResult, Requests
from webdyno.formats.facts import Tool, patterns
from webdyno.load.instrument import Run

SLOTH = Tool(
    name="sloth",
    opening="sloth",
    patterns=patterns(
        r"sloth: (?P<requests>INT) in (?P<duration_s>NUM) at (?P<throughput_rps>NUM)"
    ),
)


class Sloth(Instrument):
    """`sloth`: one request, then sleep."""

    name = "sloth"
    package = "bash"
    version_flag = "--version"
    reader = SLOTH

    def fault(self, load: Load, requests: Sequence[object]) -> str | None:
        return only_closed(load, requests)

    def command(self, order: LoadOrder, cpus: int) -> list[str]:
        return ["echo", "sloth: 1 in 1.0 at 1.0"]

    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:
        return LoadResult(
            target=order.url + order.requests[0].path,
            loop="closed",
            measured_s=run.measured_s,
            requests=Requests(completed=run.requests),
            by_status={},
            failures=Failures(),
            keepalive=KeepAliveResult(requested=order.load.keepalive),
            throughput_rps=run.throughput_rps,
            client=done.client(threads=1),
        )


PROGRAM = Sloth()
'''


@pytest.fixture
def sloth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One more file in the package, for as long as a test lasts."""
    (tmp_path / "sloth.py").write_text(SLOTH)
    monkeypatch.setattr(webdyno.load, "__path__", [*webdyno.load.__path__, str(tmp_path)])
    yield "sloth"
    sys.modules.pop("webdyno.load.sloth", None)


def test_a_file_is_all_that_a_generator_takes(sloth: str) -> None:
    assert sloth in programs()
    experiment = Catalogue.load().experiment("static-hello", read_overrides([f"generator={sloth}"]))
    assert experiment.generator == sloth
    order = LoadOrder("a slot", "http://127.0.0.1", (Request("/", Expectation(200)),), Load(), 1.0)
    with program(sloth).new([0]) as generator:
        assert generator.slot(order).throughput_rps == 1.0


def test_what_it_can_not_do_or_report_is_refused_with_the_flag(sloth: str) -> None:
    catalogue = Catalogue.load()
    for wrong, reported in [
        (["load.loop=open", "load.rate_per_s=5"], "closed loop only"),
        (["measure.decide_on=latency_p99_us"], "distribution of latency"),
        (['load.paths=["/hello.txt", "/100.txt"]'], "one path only"),
    ]:
        with pytest.raises(UserError, match=rf"--set generator=sloth: .*{reported}"):
            catalogue.experiment("static-hello", read_overrides([f"generator={sloth}", *wrong]))


def test_a_program_that_nobody_registered_is_reported_with_those_that_are_there() -> None:
    with pytest.raises(UserError, match="no load generator named 'sloth'; choose from loadgen, ab"):
        program("sloth")


def folder(spec: TargetSpec) -> GeneratedService:
    """`folder:PATH`: what lies in a folder, served by Python."""
    serve = f"{sys.executable} -m http.server --bind $HOST --directory '{spec.text}' $PORT"
    return command.make(replace(spec, text=serve))


def test_a_kind_of_own_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "folder", OwnKind(folder))
    (tmp_path / "public").mkdir()
    (tmp_path / "public/hello.txt").write_text("hello")
    variants = {"mine": {"stack": "folder:public"}, "nginx": {"stack": "nginx"}}
    draft = Draft.of(CommandLine({"variants": variants}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), tmp_path, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"]["mine"]["stack"]), catalogue.site("own")
    kept = tmp_path / "kept"
    with (
        open_stack(stack, {}, site, folder=kept, testbed=Testbed()) as running,
        urlopen(f"{running.url}/hello.txt") as response,  # noqa: S310 (our own server)
    ):
        assert response.read() == b"hello"
    settings = {"mine": {"stack": "folder:public", "settings": {"n": {"type": "switch"}}}}
    with pytest.raises(UserError, match=r"settings can be declared for .* this is folder:public"):
        resolve(
            Draft.of(CommandLine({"variants": settings}, {}), []),
            *(Catalogue.load(), tmp_path, lambda _: None, lambda _: None),
        )


@dataclass(frozen=True)
class StormFlags:
    """Flags that a command might get: description, key and check are said together."""

    storm: Annotated[
        str | None, flag("COUNT: requests due at once."), Sets("load.burst", as_in_toml=True)
    ] = None
    calm: Annotated[bool, flag("Look at rest."), Sets("measure.rest_s", 2.5)] = False
    skip: Annotated[Sequence[str], flag("PATTERN: what may differ."), Sets("ignore")] = ()


def test_a_flag() -> None:
    assert list(settings_of(StormFlags())) == []
    assert list(settings_of(StormFlags("5", calm=True, skip=["a", "b"]))) == [
        Override(("load", "burst"), 5, "--storm 5"),
        Override(("measure", "rest_s"), 2.5, "--calm"),
        Override(("ignore",), ["a", "b"], "--skip a --skip b"),
    ]


def test_a_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Sloth.toml").touch()
    sloth = Layout("Sloth.toml", lambda _: FoundApp("Sloth.toml", "sloth --port $PORT"))
    monkeypatch.setattr(layouts, "LAYOUTS", (sloth, *layouts.LAYOUTS))
    found = layouts.find_app(tmp_path)
    assert found
    assert found.start == "sloth --port $PORT"
    assert layouts.looked_for().startswith("Sloth.toml, Procfile")
