"""What only the page says: what a request costs, and how the configurations of variants differ."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from webdyno.comparison import question_of
from webdyno.core import format as text
from webdyno.core.errors import UserError
from webdyno.core.files import MIB, everything_below, read_given
from webdyno.core.judgement import EndpointFigures, Judgement, VariantFacts
from webdyno.core.load_result import TlsUse
from webdyno.core.metrics import responses
from webdyno.core.readings import CpuUse, PressureUse, Readings, ServiceUse
from webdyno.core.records import SlotRecord
from webdyno.core.run import round_path, variant_folder
from webdyno.core.text import line_diff
from webdyno.evidence.point_data import PointData
from webdyno.report.show import PointView, RunView, first

SYSTEM_CALLS = "System calls per request, on the servers' CPUs"
FEWEST_CALLS = 0.02
"""A call that is rarer says nothing of a request."""


@dataclass(frozen=True)
class Cost:
    """One thing that was counted, as each variant had it."""

    what: str
    by_variant: dict[str, str]


@dataclass(frozen=True)
class _VariantSlots:
    """A variant's measured slots that have readings."""

    slots: Sequence[SlotRecord]
    readings: Sequence[Readings]

    def each(self, count: Callable[[Readings], float]) -> float:
        """Give a count per response, over all slots."""
        answered = sum(responses(slot) for slot in self.slots)
        return sum(map(count, self.readings)) / answered if answered else 0.0

    def handshakes(self, count: Callable[[TlsUse], int]) -> float:
        """Give a count of handshakes per response of the window, over all slots."""
        made = sum(count(slot.load.tls) for slot in self.slots if slot.load.tls)
        answered = sum(slot.load.requests.completed for slot in self.slots)
        return made / answered if answered else 0.0

    def of_services(self, count: Callable[[ServiceUse], float | None]) -> float:
        """Give a count of all services together per response."""
        return self.each(lambda seen: sum(count(use) or 0 for use in seen.services.values()))


Notify = Callable[[_VariantSlots], float | None]

PER_REQUEST: tuple[tuple[str, Notify], ...] = (
    ("CPU time in programs, µs", lambda seen: 1e6 * seen.of_services(lambda use: use.cpu_user_s)),
    ("CPU time in the kernel, µs", lambda seen: 1e6 * seen.of_services(lambda use: use.cpu_sys_s)),
    ("context switches to wait", lambda seen: seen.of_services(lambda use: use.switches_voluntary)),
    (
        "context switches forced",
        lambda seen: seen.of_services(lambda use: use.switches_involuntary),
    ),
    ("page faults from memory", lambda seen: seen.of_services(lambda use: use.faults_minor)),
    ("page faults from disk", lambda seen: seen.of_services(lambda use: use.faults_major)),
    ("bytes read from disk", lambda seen: seen.of_services(lambda use: use.disk_read_bytes)),
    ("bytes written to disk", lambda seen: seen.of_services(lambda use: use.disk_written_bytes)),
    ("full TLS handshakes", lambda seen: seen.handshakes(lambda use: use.full_handshakes)),
    ("resumed TLS handshakes", lambda seen: seen.handshakes(lambda use: use.resumed_handshakes)),
    ("network bytes sent", lambda seen: seen.each(lambda use: use.network.sent_bytes)),
    ("network bytes received", lambda seen: seen.each(lambda use: use.network.received_bytes)),
    ("network packets sent", lambda seen: seen.each(lambda use: use.network.sent_packets)),
)
STANDING: tuple[tuple[str, Notify], ...] = (
    ("memory, MiB (PSS)", lambda seen: _largest(seen, lambda use: (use.pss_bytes or 0) / MIB)),
    (
        "memory at its peak, MiB (RSS)",
        lambda seen: _largest(seen, lambda use: use.peak_rss_bytes / MIB),
    ),
    ("processes", lambda seen: _largest(seen, lambda use: use.processes)),
    ("threads", lambda seen: _largest(seen, lambda use: use.threads)),
)
HOST: tuple[tuple[str, Notify], ...] = (
    ("servers' CPUs busy, %", lambda seen: _share(seen, lambda use: use.host.servers, "busy_s")),
    ("client's CPUs busy, %", lambda seen: _share(seen, lambda use: use.host.client, "busy_s")),
    ("CPU time stolen by the hypervisor, %", lambda seen: _stolen(seen)),
    ("tasks waiting for a CPU, % of the time", lambda seen: _pressure(seen, lambda use: use.cpu_s)),
    (
        "tasks waiting for memory, % of the time",
        lambda seen: _pressure(seen, lambda use: use.memory_s),
    ),
    ("tasks waiting for disks, % of the time", lambda seen: _pressure(seen, lambda use: use.io_s)),
    (
        "tasks running or waiting (load)",
        lambda seen: median(use.host.load_1m for use in seen.readings),
    ),
)
GROUPS = {
    "Per request": PER_REQUEST,
    "At the end of a slot, at most": STANDING,
    "This machine meanwhile": HOST,
}


def costs(data: PointData, facts: Sequence[VariantFacts]) -> dict[str, list[Cost]]:
    """Give what is known of all variants, by group; what is nothing everywhere is excluded."""
    seen = {variant: _seen(data.of_variant(variant)) for variant in data.experiment.variants}
    groups: dict[str, list[Cost]] = {}
    if all(had.readings for had in seen.values()):
        groups = {group: list(_known(wanted, seen)) for group, wanted in GROUPS.items()}
        groups["Per request"][:0] = _by_service(seen)
    if calls := _system_calls(data):
        groups[SYSTEM_CALLS] = calls
    groups["At the start"] = _starts(facts)
    groups["Caches"] = _caches(facts)
    return {group: costs_of_group for group, costs_of_group in groups.items() if costs_of_group}


def _system_calls(data: PointData) -> list[Cost]:
    """Give the calls that make up some of a request, the most frequent first."""
    slots = [
        record for record in data.records if isinstance(record, SlotRecord) and record.system_calls
    ]
    each = {
        variant: _calls([slot for slot in slots if slot.variant == variant])
        for variant in data.experiment.variants
    }
    calls = {call for counts in each.values() for call in counts}
    most = {call: max(counts[call] for counts in each.values()) for call in calls}
    names = sorted(
        (call for call in most if most[call] >= FEWEST_CALLS), key=lambda call: -most[call]
    )
    if not names:
        return []
    total = Cost(
        "all", {variant: _figure(sum(counts.values())) for variant, counts in each.items()}
    )
    return [
        total,
        *(
            Cost(name, {variant: _figure(each[variant][name]) for variant in each})
            for name in names
        ),
    ]


def _calls(slots: Sequence[SlotRecord]) -> defaultdict[str, float]:
    """Give each call's count per response, over all slots."""
    answered = sum(responses(slot) for slot in slots) or 1
    per_response = defaultdict[str, float](float)
    for slot in slots:
        for call, count in (slot.system_calls or {}).items():
            per_response[call] += count / answered
    return per_response


def _known(wanted: Iterable[tuple[str, Notify]], seen: dict[str, _VariantSlots]) -> Iterable[Cost]:
    for what, notify in wanted:
        figures = {variant: notify(value) for variant, value in seen.items()}
        if any(figures.values()):
            yield Cost(what, {variant: _figure(figure) for variant, figure in figures.items()})


def _starts(facts: Sequence[VariantFacts]) -> list[Cost]:
    ready = {fact.variant: _figure(fact.ready_s and 1000 * fact.ready_s) for fact in facts}
    return [Cost("time to the first valid response, ms (median)", ready)] if ready else []


def _caches(facts: Sequence[VariantFacts]) -> list[Cost]:
    roles = dict.fromkeys(role for fact in facts for role in fact.hit_share)
    return [
        Cost(
            f"keys asked for that {role} had, %",
            {fact.variant: _percent(fact.hit_share.get(role)) for fact in facts},
        )
        for role in roles
    ]


def _percent(share: float | None) -> str:
    return _figure(None if share is None else 100 * share)


def _seen(slots: Sequence[SlotRecord]) -> _VariantSlots:
    return _VariantSlots(
        [slot for slot in slots if slot.readings],
        [slot.readings for slot in slots if slot.readings],
    )


def _by_service(seen: dict[str, _VariantSlots]) -> Iterable[Cost]:
    """Split the CPU time where a variant has several services."""
    roles = dict.fromkeys(
        role for slot in seen.values() for use in slot.readings[:1] for role in use.services
    )
    if all(len(had.readings[0].services) < 2 for had in seen.values()):
        return
    for role in roles:
        by_variant = {
            variant: _figure(value.each(partial(_cpu_us, role=role)))
            if role in value.readings[0].services
            else text.MISSING
            for variant, value in seen.items()
        }
        yield Cost(f"CPU time of {role}, µs", by_variant)


def _cpu_us(readings: Readings, role: str) -> float:
    use = readings.services.get(role)
    return 1e6 * use.cpu_s if use else 0.0


def _largest(slots: _VariantSlots, state: Callable[[ServiceUse], float]) -> float:
    return max(sum(map(state, use.services.values())) for use in slots.readings)


def _share(slots: _VariantSlots, cpus: Callable[[Readings], CpuUse], kind: str) -> float:
    total_s = sum(cpus(use).total_s for use in slots.readings)
    return (
        100 * sum(getattr(cpus(use), kind) for use in slots.readings) / total_s if total_s else 0.0
    )


def _stolen(slots: _VariantSlots) -> float:
    sides: list[Callable[[Readings], CpuUse]] = [lambda r: r.host.servers, lambda r: r.host.client]
    return fmean(_share(slots, side, "steal_s") for side in sides)


def _pressure(slots: _VariantSlots, waited_s: Callable[[PressureUse], float]) -> float | None:
    pressures = [
        (use.host.pressure, use.host.took_s) for use in slots.readings if use.host.pressure
    ]
    took_s = sum(seconds for _, seconds in pressures)
    return 100 * sum(waited_s(pressure) for pressure, _ in pressures) / took_s if took_s else None


def _figure(figure: float | None) -> str:
    if figure is None:
        return text.MISSING
    return text.number(figure) if figure == int(figure) else text.significant(figure, 3)


ASKED: dict[str, Callable[[EndpointFigures], str]] = {
    "responses": lambda seen: text.number(seen.completed),
    "failures": lambda seen: text.number(seen.failed),
    "throughput, req/s": lambda seen: text.significant(seen.throughput_rps),
    "latency p99": lambda seen: text.MISSING if seen.p99_us is None else text.latency(seen.p99_us),
}


def of_endpoints(judged: Judgement) -> dict[str, list[Cost]]:
    """Give by endpoint what each variant did with its requests."""
    return {
        endpoint.endpoint: [
            Cost(what, {its.variant: notify(its) for its in endpoint.figures})
            for what, notify in ASKED.items()
        ]
        for endpoint in judged.endpoints
    }


LARGEST_FILE_BYTES = 256 * 1024
MOST_LINES = 400
AROUND = 2
"""Lines before and after one that differs."""
_OF_THE_START = (
    (re.compile(r"""(?:/[^\s"';,:]*)?/live/\w{8}(?=/|\b)"""), "RUN"),
    (re.compile(r"(?i)(?<=:)\d{4,5}\b|(?<=listen )\d{4,5}\b|(?<=port = )\d{4,5}\b"), "PORT"),
)
"""What is another at each start: the folder that servers run in, and their ports."""
_NO_CONFIGURATION = {"version.txt"}


class FileDifference(NamedTuple):
    """What of one file is other in a variant than in another one."""

    variant: str
    other: str
    file: str
    diff: str
    """Unified, from the other variant's to the variant's."""


def configuration_differences(folder: Path, view: RunView) -> list[FileDifference]:
    """Compare the files of variants that were compared, where both have them.

    At the first point.
    """
    point = view.points[0]
    files = {
        variant: files_of(folder, point, variant) for variant in point.data.experiment.variants
    }
    return [
        difference
        for variant, other in _pairs(point)
        for difference in file_differences(variant, files[variant], other, files[other])
    ]


def _pairs(point: PointView) -> Sequence[tuple[str, str]]:
    """Give which variants are compared with which: with the baseline, where there is one."""
    experiment = point.data.experiment
    own = first(show.pairs(experiment) for show in point.shows)
    if own is not None or not question_of(experiment).has_baseline:
        return own or []
    baseline, *others = experiment.variants
    return [(variant, baseline) for variant in others]


def files_of(folder: Path, point: PointView, variant: str) -> dict[str, str]:
    """Give a variant's files by `role/file`, as of the last round that it was started in."""
    for round_number in sorted(
        {record.round for record in point.data.records if record.round}, reverse=True
    ):
        root = round_path(folder, point.number, round_number) / variant_folder(variant)
        if root.is_dir():
            return dict(_readable(root, folder))
    return {}


def _readable(root: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Give the files of a variant that can be compared, by `role/file`; nothing large.

    Nor what links in the run's folder lead to: who reads may see more than who made them, and the
    report lies in that folder.
    """
    for path in sorted(everything_below(root)):
        if path.name in _NO_CONFIGURATION or path.parent == root:
            continue
        with suppress(UserError, OSError):
            content = read_given(path, LARGEST_FILE_BYTES, below=folder).decode(errors="replace")
            yield str(path.relative_to(root)), content


def file_differences(
    variant: str, files: Mapping[str, str], other: str, of_other: Mapping[str, str]
) -> Iterator[FileDifference]:
    """Give what differs in files that both have."""
    for name in sorted(files.keys() & of_other.keys()):
        lines = line_diff(
            _settled(of_other[name]),
            _settled(files[name]),
            (f"{other}: {name}", f"{variant}: {name}"),
            AROUND,
        )
        if lines:
            more = ["…"] if len(lines) > MOST_LINES else []
            yield FileDifference(variant, other, name, "\n".join(lines[:MOST_LINES] + more))


def _settled(content: str) -> list[str]:
    for volatile, name in _OF_THE_START:
        content = volatile.sub(name, content)
    return content.splitlines()
