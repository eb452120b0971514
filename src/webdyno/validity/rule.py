"""What a validity rule is, and how broken slots become warnings."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from webdyno.core.format import count
from webdyno.core.judgement import ExcludedSlot, ValidityWarning
from webdyno.core.metrics import Kind, metrics_of_kind
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData

TOO_MANY_EXCLUDED = 0.1
"""Usual share of a variant's slots that may be excluded: what fails more often belongs to the
variant."""
INTERFERENCE_TOLERATED = 0.5
"""The same for what comes from outside: the other slots are as good as ever."""
LATENCY: tuple[Kind, ...] = ("latency",)
TIMING: tuple[Kind, ...] = ("throughput", "latency")
"""Metrics that the client's speed and the link's enter; CPU per request isn't one."""
WORK: tuple[Kind, ...] = ("throughput", "latency", "work")
"""What depends on who had the CPUs, and when; what a server keeps in memory doesn't."""


class Rule(Protocol):
    """Something that has to hold for figures to mean what they say."""

    @property
    def name(self) -> str:
        """Short and stable, such as `non-2xx`; a rule with several warnings names them after it."""

    def warnings(self, data: PointData) -> Iterable[ValidityWarning]:
        """Report where it doesn't hold, with figures and a fix."""


@dataclass(frozen=True)
class RunRule:
    """A rule about a run as a whole, or about its rounds."""

    name: str
    look: Callable[[PointData], Iterable[ValidityWarning]]
    """No slot is excluded from what it looks at."""

    def warnings(self, data: PointData) -> Iterable[ValidityWarning]:
        """Report where it doesn't hold."""
        return self.look(data)


@dataclass(frozen=True)
class SlotRule:
    """A rule that each measured slot keeps or breaks by itself."""

    name: str
    broken: Callable[[SlotRecord], bool]
    what: Callable[[Sequence[SlotRecord]], str]
    """All slots of one variant that broke the rule -> what is wrong, with figures."""
    fix: str
    special_fix: Callable[[Sequence[SlotRecord]], str] = lambda _: ""
    """The fix of a special cause that these slots show; empty where they show none."""
    invalidates: Collection[Kind] = ()
    """The kinds of metrics that a broken slot is excluded from; all when empty."""
    tolerated: float = TOO_MANY_EXCLUDED
    """Share of a variant's slots that may be excluded before the variant has no valid result."""
    has_bias_bound: bool = False
    """Whether it is interference, which comes by chance and whose bounds are known
    (`comparison/bias.py`): slots that had it are excluded only where that makes intervals narrower,
    and never too many of them."""
    censors: bool = False
    """Whether a slot that breaks it still bounds the throughput from below: where too many do, they
    stay for the throughput, which is "at least"."""

    def excluded_slots(self, slots: Sequence[SlotRecord]) -> list[ExcludedSlot]:
        """List the slots that break the rule and don't count for some metric.

        Trials of a search for the capacity all count: some of them ask for too much by intent.
        """
        by_variant: dict[str, list[SlotRecord]] = {}
        for slot in (slot for slot in slots if slot.trial is None):
            by_variant.setdefault(slot.variant, []).append(slot)
        excluded = []
        for variant, mine in by_variant.items():
            bad = [slot for slot in mine if self.broken(slot)]
            too_many = self._too_many(bad, len(mine))
            if too_many and self.has_bias_bound:
                continue
            metrics = self._invalidated_metrics(mine, too_many)
            excluded += [
                ExcludedSlot(
                    round=slot.round,
                    slot=slot.slot,
                    variant=variant,
                    rule=self.name,
                    metrics=metrics,
                )
                for slot in bad
            ]
        return excluded

    def _invalidated_metrics(self, slots: Sequence[SlotRecord], too_many: bool) -> list[str]:
        """Return the metrics for which slots don't count; "at least" throughput still does."""
        censored = too_many and self.censors
        return metrics_of_kind(
            [kind for kind in self.invalidates if kind != "throughput" or not censored], slots
        )

    def _too_many(self, bad: Sequence[SlotRecord], total: int) -> bool:
        return len(bad) > self.tolerated * total

    def too_many(self, mine: Sequence[SlotRecord]) -> bool:
        """Whether more of a variant's slots break it than may be excluded."""
        return self._too_many([slot for slot in mine if self.broken(slot)], len(mine))

    def warnings(self, data: PointData) -> list[ValidityWarning]:
        """Return a warning for each variant with broken slots: invalid when they are too many."""
        warnings = []
        for variant in data.experiment.variants:
            mine = data.of_variant(variant)
            if bad := [slot for slot in mine if self.broken(slot)]:
                warnings.append(self._warning(variant, bad, len(mine)))
        return warnings

    def _warning(self, variant: str, bad: Sequence[SlotRecord], total: int) -> ValidityWarning:
        too_many = self._too_many(bad, total)
        share = f", in {len(bad)} of {count(total, 'slot')}"
        if self.has_bias_bound:
            scope = share
        elif not too_many:
            scope = f"{share} (excluded)"
        elif self.censors:
            scope = f"{share}: its throughput is at least what was measured"
        else:
            scope = ""
        return ValidityWarning(
            rule=self.name,
            severity="invalid" if too_many and not self.has_bias_bound else "note",
            variant=variant,
            what=f"variant {variant}: {self.what(bad)}{scope}",
            fix=self.special_fix(bad) or self.fix,
            metrics=self._invalidated_metrics(bad, too_many),
        )


def uncomparable(rule: str, variant: str, what: str, fix: str) -> ValidityWarning:
    """Make a warning about a variant that can't be compared."""
    return ValidityWarning(rule=rule, severity="invalid", variant=variant, what=what, fix=fix)


def note(
    rule: str, variant: str, what: str, fix: str, metrics: Sequence[str] = ()
) -> ValidityWarning:
    """Make a warning about a variant that invalidates nothing."""
    return ValidityWarning(
        rule=rule,
        severity="note",
        variant=variant,
        what=f"variant {variant}: {what}",
        fix=fix,
        metrics=list(metrics),
    )


def with_readings(broken: Callable[[Readings], bool]) -> Callable[[SlotRecord], bool]:
    """Make a slot rule of one about probe readings; a slot without any doesn't break it."""
    return lambda slot: slot.readings is not None and broken(slot.readings)


def readings_of(slots: Iterable[SlotRecord]) -> list[Readings]:
    return [slot.readings for slot in slots if slot.readings is not None]
