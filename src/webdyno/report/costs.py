"""What variants cost: at a given arrival rate, at rest, and per request by all that is counted."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median
from typing import NamedTuple

from webdyno.core import format as text
from webdyno.core.files import MIB
from webdyno.core.findings import OverRounds
from webdyno.core.judgement import EndpointFigures, Judgement, VariantFacts
from webdyno.core.load_result import TlsUse
from webdyno.core.metrics import responses
from webdyno.core.readings import CpuUse, PressureUse, Readings, ServiceUse
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.media import document as doc
from webdyno.report.show import PointView

SYSTEM_CALLS = "System calls per request, on the servers' CPUs"
FEWEST_CALLS = 0.02
"""A call that is rarer says nothing of a request."""


class Cost(NamedTuple):
    """One thing that was counted, as each variant had it."""

    what: str
    by_variant: dict[str, str]


@dataclass(frozen=True)
class _VariantSlots:
    slots: Sequence[SlotRecord]
    readings: Sequence[Readings]

    def each(self, count: Callable[[Readings], float]) -> float:
        """Return a count per response, over all slots."""
        answered = sum(responses(slot) for slot in self.slots)
        return sum(map(count, self.readings)) / answered if answered else 0.0

    def handshakes(self, count: Callable[[TlsUse], int]) -> float:
        """Return a count of handshakes per response of the window, over all slots."""
        made = sum(count(slot.load.tls) for slot in self.slots if slot.load.tls)
        answered = sum(slot.load.requests.completed for slot in self.slots)
        return made / answered if answered else 0.0

    def of_services(self, count: Callable[[ServiceUse], float | None]) -> float:
        """Return a count of all services together per response."""
        return self.each(lambda seen: sum(count(use) or 0 for use in seen.services.values()))


CountOf = Callable[[_VariantSlots], float | None]

PER_REQUEST: tuple[tuple[str, CountOf], ...] = (
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
STANDING: tuple[tuple[str, CountOf], ...] = (
    ("memory, MiB (PSS)", lambda seen: _largest(seen, lambda use: (use.pss_bytes or 0) / MIB)),
    (
        "memory at its peak, MiB (RSS)",
        lambda seen: _largest(seen, lambda use: use.peak_rss_bytes / MIB),
    ),
    ("processes", lambda seen: _largest(seen, lambda use: use.processes)),
    ("threads", lambda seen: _largest(seen, lambda use: use.threads)),
)
HOST: tuple[tuple[str, CountOf], ...] = (
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
    """Return what is known of all variants, by group; what is nothing everywhere is excluded."""
    seen = {}
    for variant in data.experiment.variants:
        slots = [slot for slot in data.of_variant(variant) if slot.readings]
        seen[variant] = _VariantSlots(slots, [slot.readings for slot in slots if slot.readings])
    groups: dict[str, list[Cost]] = {}
    if all(slots.readings for slots in seen.values()):
        for group, counts in GROUPS.items():
            groups[group] = []
            for what, count in counts:
                figures = {variant: count(slots) for variant, slots in seen.items()}
                if any(figures.values()):
                    groups[group].append(_cost(what, figures))
        groups["Per request"][:0] = _by_service(seen)
    groups[SYSTEM_CALLS] = _system_calls(data)
    if facts:
        ready = {fact.variant: fact.ready_s and 1000 * fact.ready_s for fact in facts}
        groups["At the start"] = [_cost("time to the first valid response, ms (median)", ready)]
    groups["Caches"] = _caches(facts)
    return {group: costs_of_group for group, costs_of_group in groups.items() if costs_of_group}


def _cost(what: str, figures: Mapping[str, float | None]) -> Cost:
    by_variant = {}
    for variant, figure in figures.items():
        if figure is None:
            by_variant[variant] = text.MISSING
        else:
            is_whole = figure == int(figure)
            by_variant[variant] = text.number(figure) if is_whole else text.significant(figure, 3)
    return Cost(what, by_variant)


def _system_calls(data: PointData) -> list[Cost]:
    """Return the calls that make up some of a request, the most frequent first."""
    slots = [
        record for record in data.records if isinstance(record, SlotRecord) and record.system_calls
    ]
    each = {
        variant: _calls([slot for slot in slots if slot.variant == variant])
        for variant in data.experiment.variants
    }
    calls = {call for counts in each.values() for call in counts}
    most = {call: max(counts[call] for counts in each.values()) for call in calls}
    frequent = [call for call in calls if most[call] >= FEWEST_CALLS]
    if not frequent:
        return []
    return [
        _cost("all", {variant: sum(counts.values()) for variant, counts in each.items()}),
        *(
            _cost(name, {variant: counts[name] for variant, counts in each.items()})
            for name in sorted(frequent, key=lambda call: -most[call])
        ),
    ]


def _calls(slots: Sequence[SlotRecord]) -> defaultdict[str, float]:
    answered = sum(responses(slot) for slot in slots) or 1
    per_response = defaultdict[str, float](float)
    for slot in slots:
        for call, count in (slot.system_calls or {}).items():
            per_response[call] += count / answered
    return per_response


def _caches(facts: Sequence[VariantFacts]) -> list[Cost]:
    shares = {fact.variant: fact.hit_share for fact in facts}
    return [
        _cost(
            f"keys asked for that {role} had, %",
            {name: 100 * hit[role] if role in hit else None for name, hit in shares.items()},
        )
        for role in dict.fromkeys(role for hit in shares.values() for role in hit)
    ]


def _by_service(seen: Mapping[str, _VariantSlots]) -> Iterator[Cost]:
    services = {variant: slots.readings[0].services for variant, slots in seen.items()}
    if all(len(roles) < 2 for roles in services.values()):
        return
    for role in dict.fromkeys(role for roles in services.values() for role in roles):
        cpu_us = partial(_cpu_us, role=role)
        yield _cost(
            f"CPU time of {role}, µs",
            {
                variant: slots.each(cpu_us) if role in services[variant] else None
                for variant, slots in seen.items()
            },
        )


def _cpu_us(readings: Readings, role: str) -> float:
    use = readings.services.get(role)
    return 1e6 * use.cpu_s if use else 0.0


def _largest(slots: _VariantSlots, state: Callable[[ServiceUse], float]) -> float:
    return max(sum(map(state, use.services.values())) for use in slots.readings)


def _share(slots: _VariantSlots, cpus: Callable[[Readings], CpuUse], kind: str) -> float:
    total_s = sum(cpus(use).total_s for use in slots.readings)
    spent_s = sum(getattr(cpus(use), kind) for use in slots.readings)
    return 100 * spent_s / total_s if total_s else 0.0


def _stolen(slots: _VariantSlots) -> float:
    sides: list[Callable[[Readings], CpuUse]] = [lambda r: r.host.servers, lambda r: r.host.client]
    return fmean(_share(slots, side, "steal_s") for side in sides)


def _pressure(slots: _VariantSlots, waited_s: Callable[[PressureUse], float]) -> float | None:
    pressures = [
        (use.host.pressure, use.host.took_s) for use in slots.readings if use.host.pressure
    ]
    took_s = sum(seconds for _, seconds in pressures)
    return 100 * sum(waited_s(pressure) for pressure, _ in pressures) / took_s if took_s else None


ASKED: dict[str, Callable[[EndpointFigures], str]] = {
    "responses": lambda seen: text.number(seen.completed),
    "failures": lambda seen: text.number(seen.failed),
    "throughput, req/s": lambda seen: text.significant(seen.throughput_rps),
    "latency p99": lambda seen: text.MISSING if seen.p99_us is None else text.latency(seen.p99_us),
}


def of_endpoints(judged: Judgement) -> dict[str, list[Cost]]:
    """Return by endpoint what each variant did with its requests."""
    return {
        endpoint.endpoint: [
            Cost(what, {its.variant: written(its) for its in endpoint.figures})
            for what, written in ASKED.items()
        ]
        for endpoint in judged.endpoints
    }


COST_COLUMNS = (
    doc.Column("cores per 1,000 req/s", "value"),
    doc.Column("95% CI", "range"),
    doc.Column("req per core-second", "value"),
)
INSTRUCTIONS = doc.Column("instructions per req", "value")
COST_NOTE = (
    "Cores: CPUs that the servers keep busy for each 1,000 requests per second. Requests per "
    "core-second: for how many they need a second of CPU time. User and system time of all their "
    "processes, and of network interrupts where the kernel keeps these apart."
)
INSTRUCTIONS_NOTE = (
    " Instructions: what CPUs execute for a request in user space; counted in slots of their own, "
    "medians of rounds."
)
REST_COLUMNS = (
    doc.Column("CPU", "value"),
    doc.Column("wake-ups/s", "value"),
    doc.Column("memory", "value"),
    doc.Column("a connection", "value"),
)
REST_NOTE = (
    "After the load of a round, without requests; medians of rounds. CPU: share of one. Memory: "
    "resident, of all processes. A connection: what each of 256 open ones adds to that, "
    "after one request on each; the kernel's own memory isn't counted."
)
LEAST_SHARE = 5e-6
"""Of a CPU: less is shown as nothing."""

Rows = list[list[doc.Cell | str]]


def cost_sections(
    points: Sequence[PointView], factors: Sequence[str] = ()
) -> Iterator[doc.Section]:
    """Yield what each variant costs, where that was measured; of several points by `factors`."""
    costs = [cost for point in points for cost in point.judgement.costs]
    if costs:
        counted = any(cost.instructions for cost in costs)
        columns = [*COST_COLUMNS, *([INSTRUCTIONS] if counted else [])]
        rows = [(point, _cost_rows(point, counted=counted)) for point in points]
        uncounted = [
            doc.Paragraph(f"Instructions per request: {why}", look="soft")
            for why in dict.fromkeys(cost.uncounted for cost in costs if cost.uncounted)
        ]
        yield doc.Section(
            "What it costs",
            [_table(columns, rows, factors), *uncounted],
            COST_NOTE + (INSTRUCTIONS_NOTE if counted else ""),
            "user and system time of all processes",
        )
    if any(point.judgement.at_rest for point in points):
        rows = [(point, _rest_rows(point)) for point in points]
        table = _table(REST_COLUMNS, rows, factors)
        yield doc.Section("Idle", [table], REST_NOTE, "without requests; CPU as a share of one")


def _table(
    columns: Sequence[doc.Column],
    of_points: Sequence[tuple[PointView, Rows]],
    factors: Sequence[str],
) -> doc.Table:
    return doc.Table(
        [*map(doc.Column, factors), doc.Column("variant", "name", obvious=True), *columns],
        [
            doc.RowGroup(rows, shared=point.level_words if factors else [])
            for point, rows in of_points
            if rows
        ],
        style="brief",
    )


def _cost_rows(point: PointView, *, counted: bool) -> Rows:
    known = {cost.variant: cost for cost in point.judgement.costs}
    rows: Rows = []
    for variant in _in_order(point):
        cost = known.get(variant)
        instructions = _median(cost.instructions if cost else None) if counted else None
        if cost is None:  # such as one that is overloaded, which a warning says
            row: list[doc.Cell | str] = [variant, text.MISSING, "", text.MISSING]
        else:
            cores = cost.cores_per_1000_rps
            row = [
                variant,
                doc.Cell(text.quantity(cores), strong=True),
                doc.Cell(text.quantity_bounds(cores), soft=True),
                text.quantity(cost.requests_per_core_s),
            ]
        rows.append([*row, instructions] if instructions else row)
    return rows


def _rest_rows(point: PointView) -> Rows:
    known = {cost.variant: cost for cost in point.judgement.at_rest}
    rows: Rows = []
    for cost in (known[variant] for variant in _in_order(point) if variant in known):
        share = cost.cpu_share.median
        rows.append(
            [
                cost.variant,
                text.percent(share) if share >= LEAST_SHARE else "0%",
                _median(cost.wake_ups_per_s),
                _median(cost.memory_mib, " MiB"),
                _median(cost.connection_kib, " KiB"),
            ]
        )
    return rows


def _median(values: OverRounds | None, unit: str = "") -> str:
    return f"{text.significant(values.median, 3)}{unit}" if values else text.MISSING


def _in_order(point: PointView) -> list[str]:
    """Return the variants in the order of the table of results."""
    if point.deciding:
        return [row.variant for row in point.deciding.rows]
    return point.variants
