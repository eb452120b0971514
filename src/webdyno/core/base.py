"""What every model shares, and types of fields: counts, and quantities as people write them.

Unknown keys are mistakes, and values don't change after they were read. How a model is read is
worked out when that is first done: no command reads all of them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""How many of something were counted. Beyond it no counter counts, and files are damaged."""

Amount = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
"""How much of something was measured, in any unit."""


class _Replaceable(BaseModel):
    """A record that can be copied with other values in some fields."""

    def replace(self, **changes: object) -> Self:
        """Return a copy with other values in some fields, as `datetime.replace` does.

        Raise TypeError for a field that there isn't. Values are not validated.
        """
        if unknown := changes.keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        return self.model_copy(update=changes)


class Model(_Replaceable):
    """A strict, frozen record.

    Misspelt keys are refused instead of being silently ignored, and a value has the type that is
    requested: true is no number, and neither is "5" or infinity.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


class Foreign(_Replaceable):
    """A frozen record that another program wrote: keys that it adds later are let through."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,
    )


ENDLESS = 1e9
"""A ratio beyond it counts as one without a bound."""


class Interval(Model):
    """An estimate with its confidence interval."""

    low: float
    estimate: float
    high: float
    confidence: float = 0.95

    def map(self, by: Callable[[float], float]) -> "Interval":
        """Return that of what follows from this by a function that only rises, or only falls."""
        low, high = sorted((by(self.low), by(self.high)))
        return self.replace(low=low, estimate=by(self.estimate), high=high)

    def inverse(self) -> "Interval":
        """Return that of the ratio the other way round."""
        return Interval(
            low=1 / self.high,
            estimate=1 / self.estimate,
            high=1 / self.low if self.low else inf,
            confidence=self.confidence,
        )


TIMES_S = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
SIZES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
SHARES = {"%": 0.01}

_WRITTEN = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-zµ%]*)(/s)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of quantity."""

    base: str
    """The unit of a number without one, in words."""
    units: Mapping[str, float]
    examples: str
    shown: tuple[tuple[float, str], ...]
    """Units for people, the largest first."""
    zero: str
    """How zero is written."""
    whole: bool = False
    """Whether there are no fractions of its base unit."""
    per_second: bool = False
    """Whether `/s` may stand behind the unit."""

    def read(self, text: str) -> float | None:
        """Read a number with its unit; None when the text is none of this kind."""
        parts = _WRITTEN.fullmatch(text.strip().lower())
        if not parts or (parts[3] and not self.per_second):
            return None
        scale = self.units.get(parts[2]) if parts[2] else 1
        return None if scale is None else float(parts[1]) * scale

    def read_with_unit(self, text: str) -> float | None:
        """Read the same, but no number that lacks its unit."""
        return None if text.strip()[-1:].isdigit() else self.read(text)

    def words(self, value: float) -> str:
        """Write a value in the largest unit of which it is a whole number: `90 s`, `32 MB`."""
        if value == 0:
            return self.zero
        for scale, unit in self.shown:
            count = value / scale
            if 1 <= count < 10_000 and abs(count - round(count)) < 1e-9 * count:
                return f"{round(count)}{_blank(unit)}{unit}"
        scale, unit = next((step for step in self.shown if value >= step[0]), self.shown[-1])
        count = value / scale
        shown = f"{count:.0f}" if count >= 1000 else f"{count:.4g}"
        return f"{shown}{_blank(unit)}{unit}"


def _blank(unit: str) -> str:
    return "" if unit == "%" else " "


TIME = Kind(
    "seconds",
    TIMES_S,
    "90s, 500ms or 5m",
    ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    zero="0 s",
)
SIZE = Kind(
    "bytes",
    SIZES,
    "512MB or 1GiB",
    (
        *((10**9, "GB"), (2**30, "GiB"), (10**6, "MB"), (2**20, "MiB"), (10**3, "kB")),
        *((2**10, "KiB"), (1, "B")),
    ),
    zero="0 B",
    whole=True,
)
RATE = Kind(
    "bits per second",
    RATES,
    "100mbit or 1gbit",
    ((10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"), (1, "bit/s")),
    zero="0 bit/s",
    per_second=True,
)
SHARE = Kind("share of one", SHARES, "2% or 0.02", ((0.01, "%"),), zero="0%")


@dataclass(frozen=True)
class Quantity:
    """Marks a number of a model as a quantity: text with a unit is read, its bounds are kept."""

    kind: Kind
    least: float
    most: float
    above: bool = False
    """Whether it must be more than `least`."""

    def __get_pydantic_core_schema__(
        self, source: type, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read text before pydantic's own check of the type, and hold the number in its bounds."""
        whole = source is int
        number = core_schema.int_schema(strict=True)
        real = core_schema.float_schema(strict=True, allow_inf_nan=False)
        del handler
        return core_schema.no_info_wrap_validator_function(self._check, number if whole else real)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe what people write, a number or text with a unit; what is recorded, a number."""
        number = handler(core)
        if handler.mode == "serialization":
            return number
        return {"anyOf": [number, {"type": "string", "examples": [self.kind.examples]}]}

    def _check(self, value: object, typed: ValidatorFunctionWrapHandler) -> float:
        number: float = typed(self._read(value) if isinstance(value, str) else value)
        enough = number > self.least if self.above else number >= self.least
        if not enough or number > self.most:
            raise PydanticCustomError("quantity", "{wish}", {"wish": f"be {self.range()}"})
        return number

    def _read(self, text: str) -> float:
        number = self.kind.read(text)
        if number is None:
            wish = f"look like {self.kind.examples}"
            raise PydanticCustomError("quantity", "{wish}", {"wish": wish})
        return round(number) if self.kind.whole and number.is_integer() else number

    def range(self) -> str:
        """Return words for its bounds."""
        least, most = self.kind.words(self.least), self.kind.words(self.most)
        return f"more than {least} and at most {most}" if self.above else f"from {least} to {most}"


HOUR_S = 3600.0
MOST_BYTES = 10**12

Seconds = Annotated[float, Quantity(TIME, 0, HOUR_S, above=True)]
"""A length of time that isn't nothing."""
Pause = Annotated[float, Quantity(TIME, 0, HOUR_S)]
"""A length of time that may be nothing."""
Bursts = Literal["auto", "on", "off"]
"""Whether a warm-up comes in bursts; auto: where that makes servers faster."""
Soak = Annotated[float, Quantity(TIME, 0, 24 * HOUR_S)]
"""Load without a break, hours if asked; or none."""
MOST_DELAY_S = 0.01
Delay = Annotated[float, Quantity(TIME, 0, MOST_DELAY_S)]
"""How much later than it was due something may be done; a longer one would be felt by itself."""
Budget = Annotated[float, Quantity(TIME, 0, 30 * 24 * HOUR_S, above=True)]
"""Time for a whole run."""
Size = Annotated[int, Quantity(SIZE, 1, MOST_BYTES)]
"""A number of bytes."""

PAGE_BYTES = 4096
"""In which the kernel counts memory, on most machines."""


def memory_words(limit_bytes: int) -> str:
    """Write a limit as it was asked for: the kernel rounds it down to whole pages of memory."""
    near = (
        count * scale
        for scale, _ in SIZE.shown
        if scale >= 10**6
        and (count := -(-limit_bytes // scale))
        and 0 <= count * scale - limit_bytes < PAGE_BYTES
    )
    return SIZE.words(next(near, limit_bytes))
