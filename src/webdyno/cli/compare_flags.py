"""Flags of `webdyno compare` alone: arrival rates, paces, what servers use at rest."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.model.errors import UserError

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.definitions import Override

REST_S = 1.0
"""How long servers are left alone in each round, by --idle."""


@Parameter(name="*")
@dataclass(frozen=True)
class CostFlags:
    """What servers cost: at a given rate, and while nobody asks them anything."""

    rate: Annotated[
        str | None,
        Parameter(help="RATE: which needs less CPU at so many requests/s? Or several: 500,2000."),
    ] = None
    rate_per_conn: Annotated[
        str | None,
        Parameter(help="RATE: the same, at so many requests/s of each connection."),
    ] = None
    idle: Annotated[
        bool, Parameter(help="Also show what each uses at rest: CPU, wake-ups, memory.")
    ] = False

    def overrides(self) -> "Iterator[Override]":
        """Give them as settings of the experiment; raise UserError where one is none."""
        from webdyno.definitions import Override
        from webdyno.model.metrics import CPU_TIME

        if self.rate is not None and self.rate_per_conn is not None:
            raise UserError("--rate and --rate-per-conn both give the rate: omit one")
        rates = {"--rate": self.rate, "--rate-per-conn": self.rate_per_conn}
        for name, given in rates.items():
            if given is not None:
                flag = f"{name} {given}"
                yield Override(("load", "loop"), "open", flag)
                yield Override(("measure", "decide_on"), CPU_TIME, flag)
                yield _rates(RATE_KEYS[name], given, flag)
        if self.idle:
            yield Override(("measure", "rest_s"), REST_S, "--idle")


THOUSANDS = re.compile(r"0\d\d")
"""No rate begins with a zero: somebody wrote 2,000."""
RATE_KEYS = {"--rate": "rate_per_s", "--rate-per-conn": "rate_per_connection"}


def _rates(key: str, text: str, flag: str) -> "Override":
    """Give the arrival rate; several as levels of a factor."""
    from webdyno.definitions import Override
    from webdyno.definitions.override import FACTORS
    from webdyno.definitions.validation import written_value

    parts = text.split(",")
    if not all(part.strip() for part in parts):
        raise UserError(f"{flag}: should be a rate, or several such as 500,2000")
    if any(THOUSANDS.fullmatch(part) for part in parts[1:]):
        raise UserError(f"{flag}: is read as several rates; write 2000 for two thousand")
    rates = [written_value(part.strip(), flag) for part in parts]
    if len(rates) == 1:
        return Override(("load", key), rates[0], flag)
    return Override((FACTORS, f"load.{key}"), rates, flag)


NO_COSTS = CostFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class PaceFlags:
    """How requests and connections follow each other, and how responses are timed."""

    burst: Annotated[
        str | None, Parameter(help="COUNT: requests due at once, at the same rate.")
    ] = None
    conn_ramp: Annotated[
        str | None, Parameter(help="DURATION: in which connections begin, one by one.")
    ] = None
    kernel_times: Annotated[bool, Parameter(help="Time responses by when the kernel got them.")] = (
        False
    )

    def overrides(self) -> "Iterator[Override]":
        """Give them as settings of the experiment; raise UserError where one is none."""
        from webdyno.definitions import Override
        from webdyno.definitions.validation import written_value

        if self.burst is not None:
            flag = f"--burst {self.burst}"
            yield Override(("load", "burst"), written_value(self.burst, flag), flag)
        if self.conn_ramp is not None:
            flag = f"--conn-ramp {self.conn_ramp}"
            yield Override(("load", "connection_ramp_s"), self.conn_ramp, flag)
        if self.kernel_times:
            yield Override(("load", "kernel_times"), True, "--kernel-times")


USUAL_PACE = PaceFlags()
