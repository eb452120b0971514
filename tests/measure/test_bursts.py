"""The look at a warm-up in bursts, on a simulated server whose compiler works only in pauses."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import cast

import pytest

from webdyno.core.looks import BURST_PAUSE_S, BURST_S, BurstsLook
from webdyno.core.measure import Measure
from webdyno.measure import pilot_looks
from webdyno.measure.pilot_looks import PIECE_S, WINDOW_S, PilotLook
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint
from webdyno.planning.pilot import HOW, Needs

SLOW, FAST = (38, 40, 42, 40), (80, 78, 82, 80)
"""Responses in windows."""
Looking = Callable[..., BurstsLook | None]


@dataclass
class Server:
    """Each start begins again; compiled code is `fast`."""

    pauses_needed: int
    slow: Sequence[int] = SLOW
    fast: Sequence[int] = FAST
    starts: int = 0
    had: int = 0
    loads_s: list[float] = field(default_factory=list)

    def start(self, *_: object) -> "Server":
        """Forget what was compiled."""
        self.starts, self.had = self.starts + 1, 0
        return self

    def pause(self, *_: object) -> bool:
        """Compile."""
        self.had += 1
        return self.had >= self.pauses_needed

    def watch(self, seen: PilotLook, load_s: float) -> None:
        """Answer for so long."""
        kind = self.fast if self.had >= self.pauses_needed else self.slow
        seen.responses += [*kind] * round(load_s / WINDOW_S / len(kind))
        self.loads_s.append(load_s)


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Looking:
    """Look at a server; continuous load showed `slow` answers."""
    monkeypatch.setattr(pilot_looks, "RunningRound", lambda *_: nullcontext())

    def run(
        server: Server,
        *,
        works_on: bool = True,
        most_s: float = 5.0,
        within_s: float = inf,
        **asked: object,
    ) -> BurstsLook | None:
        monkeypatch.setattr(pilot_looks, "_start", server.start)
        monkeypatch.setattr(pilot_looks, "_pause", server.pause)
        measure = Measure.model_validate(asked)
        experiment = SimpleNamespace(
            measure=measure,
            warmup_s_of=lambda _: measure.warmup_s,
            warmup_bursts_of=lambda _: measure.warmup_bursts,
        )
        point = SimpleNamespace(experiment=experiment)
        needs = Needs(0.001, None, 2, most_warmup_s=most_s, most_slot_s=5.0)
        before = [PilotLook(responses=[*server.slow] * 10)]
        variant = cast("PlannedVariant", SimpleNamespace(name="server"))
        return pilot_looks.look_in_bursts(
            cast("RunningPoint", point),
            variant,
            needs,
            before,
            works_on=works_on,
            within_s=within_s,
        )

    return run


def test_bursts_go_on_until_the_compiler_has_done_its_work(look: Looking) -> None:
    server = Server(pauses_needed=2)
    found = look(server)
    assert found
    assert "faster than under continuous load" in found.summary
    assert len(found.bursts) == 2  # the second was no faster, and its pause ended at rest
    assert server.starts == 2
    as_long_s = 2 * (BURST_S + BURST_PAUSE_S) + PIECE_S
    assert server.loads_s == [*[BURST_S] * 2, PIECE_S, as_long_s]
    assert len(found.continuous) == round(as_long_s / WINDOW_S)


def test_nothing_is_tried_for_which_there_is_no_time(look: Looking) -> None:
    server = Server(pauses_needed=2)
    assert look(server, within_s=2.0) is None
    assert server.starts == 0


def test_who_was_slow_before_is_looked_at_for_longer(look: Looking) -> None:
    """Windows are as long as the slower of both looks needs."""
    found = look(Server(pauses_needed=1, slow=(3, 4, 4, 4), fast=(7, 8, 7, 8)))
    assert found
    assert len(found.after) * WINDOW_S == pytest.approx(250 / 150, abs=0.1)
    assert "faster" in found.summary


def test_what_pauses_do_not_change_costs_a_start_and_the_longest_warm_up(look: Looking) -> None:
    server = Server(pauses_needed=100)
    found = look(server, most_s=3.5)
    assert found
    assert not found.summary
    assert not found.continuous
    assert server.starts == 1
    assert server.loads_s == [*[BURST_S] * 3, PIECE_S]


@pytest.mark.parametrize("most_s", [0.0, 0.9])
def test_bursts_that_do_not_fit_are_not_tried(look: Looking, most_s: float) -> None:
    server = Server(pauses_needed=1)
    assert look(server, most_s=most_s) is None
    assert look(server, works_on=False) is None
    assert look(server, warmup_bursts="off") is None
    assert look(server, warmup_s=3.0) is None
    assert not server.loads_s


def test_who_asks_for_bursts_has_them(look: Looking) -> None:
    server = Server(pauses_needed=100)
    found = look(server, works_on=False, most_s=2.4, warmup_bursts="on")
    assert found
    assert found.summary == HOW
    assert server.starts == 1
