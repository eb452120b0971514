"""What makes a streamed response a good one: limits such as `ttft<500ms`, all to be kept."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from webdyno.core.base import TIME

LIMITS = {"ttft": "first_event_s", "tpot": "per_event_s", "latency": "latency_s"}
"""By the field's word: what the engine's contract calls it. Time to first token, time per output
token after that one (on average), and the whole response."""
_WRITTEN = re.compile(r"([a-z]+)\s*<\s*(.+)", re.ASCII)


def _limit(text: str) -> tuple[str, float]:
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or match[1] not in LIMITS:
        raise ValueError(
            f"{text!r:.60} is no limit of goodput; write 'ttft<500ms', 'tpot<50ms' or 'latency<5s'"
        )
    bound_s = TIME.read(match[2])
    if not bound_s or match[2].strip()[-1].isdigit():
        raise ValueError(f"{match[2]!r:.60} is no time with a unit; write '{match[1]}<500ms'")
    return match[1], bound_s


def engine_limits(limits: Sequence[str]) -> dict[str, float]:
    """Return limits as the engine's contract has them; raise ValueError for what is none."""
    read = [_limit(text) for text in limits]
    if len({name for name, _ in read}) < len(read):
        raise ValueError("goodput has a limit twice; give it once")
    return {LIMITS[name]: bound_s for name, bound_s in read}


def _all_read(limits: list[str]) -> list[str]:
    engine_limits(limits)
    return limits


GoodputLimits = Annotated[list[str], Field(max_length=len(LIMITS)), AfterValidator(_all_read)]
