"""Adding a load generator is adding a file."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import webdyno.generator
from webdyno.definitions import Catalogue, settings
from webdyno.generator.interface import Expectation, LoadOrder, SentRequest, program, programs
from webdyno.model.load import Load
from webdyno.model.mistake import Mistake

BENCH = '''
"""A load generator that asks once a second, written for a test."""

from collections.abc import Sequence

from webdyno.generator.instrument import Done, Instrument, only_closed
from webdyno.generator.interface import LoadOrder
from webdyno.model.load import Load
from webdyno.model.load_result import Failures, KeepAliveResult, LoadResult, Requests
from webdyno.readers.facts import Tool, patterns
from webdyno.readers.run import Run

SLOTH = Tool(
    name="sloth",
    opening="sloth",
    patterns=patterns(r"sloth: (?P<requests>INT) in (?P<duration_s>NUM) at (?P<rate_rps>NUM)"),
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
            schema=1,
            target=order.requests[0].url,
            loop="closed",
            measured_s=run.duration_s,
            requests=Requests(completed=run.requests),
            by_status={},
            failures=Failures(),
            keepalive=KeepAliveResult(asked=order.load.keepalive),
            rate_rps=run.rate_rps,
            client=done.client(threads=1),
        )


PROGRAM = Sloth()
'''


@pytest.fixture
def sloth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One more file in the package, for as long as a test lasts."""
    (tmp_path / "sloth.py").write_text(BENCH)
    monkeypatch.setattr(webdyno.generator, "__path__", [*webdyno.generator.__path__, str(tmp_path)])
    yield "sloth"
    sys.modules.pop("webdyno.generator.sloth", None)


def test_a_file_is_all_that_a_generator_takes(sloth: str) -> None:
    assert sloth in programs()
    experiment = Catalogue.load().experiment("static-hello", settings([f"generator={sloth}"]))
    assert experiment.generator == sloth
    order = LoadOrder("a slot", (SentRequest("http://127.0.0.1/", Expectation(200)),), Load(), 1.0)
    with program(sloth).new([0]) as generator:
        assert generator.slot(order).rate_rps == 1.0


def test_what_it_can_not_do_or_tell_is_refused_with_the_flag(sloth: str) -> None:
    catalogue = Catalogue.load()
    for wrong, told in [
        (["load.loop=open", "load.rate_per_s=5"], "closed loop only"),
        (["measure.decide_on=response_p99_us"], "distribution of response times"),
        (['load.paths=["/hello.txt", "/100.txt"]'], "one path only"),
    ]:
        with pytest.raises(Mistake, match=rf"--set generator=sloth: .*{told}"):
            catalogue.experiment("static-hello", settings([f"generator={sloth}", *wrong]))


def test_a_program_that_nobody_registered_is_told_with_those_that_are_there() -> None:
    with pytest.raises(Mistake, match="no load generator named 'sloth'; choose from loadgen, ab"):
        program("sloth")
