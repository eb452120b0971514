"""What variants cost at a given arrival rate, and at rest, as tables."""

from collections.abc import Iterator, Sequence

from webdyno.core import format as text
from webdyno.core.explain import CostAtRate, CostAtRest, OverRounds
from webdyno.media import document as doc
from webdyno.report.show import PointView

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
    "After the load of a round, while nobody asks; medians of rounds. CPU: share of one. Memory: "
    "resident, of all processes. A connection: what each of 256 open ones adds to that, "
    "after one request on each; the kernel's own memory isn't counted."
)
LEAST_SHARE = 5e-6
"""Of a CPU: less is shown as nothing."""

Rows = list[list[doc.Cell | str]]


def cost_sections(
    points: Sequence[PointView], factors: Sequence[str] = ()
) -> Iterator[doc.Section]:
    """Say what each variant costs, as far as that was measured; of several points by `factors`."""
    costs = [cost for point in points for cost in point.judgement.costs]
    if costs:
        counted = any(cost.instructions for cost in costs)
        columns = [*COST_COLUMNS, *([INSTRUCTIONS] if counted else [])]
        rows = [(point, _cost_rows(point, counted=counted)) for point in points]
        note = COST_NOTE + (INSTRUCTIONS_NOTE if counted else "")
        yield doc.Section(
            "What it costs",
            [_table(columns, rows, factors), *_uncounted(costs)],
            note,
            "user and system time of all processes",
        )
    if any(point.judgement.at_rest for point in points):
        rows = [(point, _rest_rows(point)) for point in points]
        table = _table(REST_COLUMNS, rows, factors)
        yield doc.Section("At rest", [table], REST_NOTE, "nobody asks; CPU as a share of one")


def _uncounted(costs: Sequence[CostAtRate]) -> Iterator[doc.Block]:
    """Say why nothing is said of instructions, where that was looked at."""
    for why in dict.fromkeys(cost.uncounted for cost in costs if cost.uncounted):
        yield doc.Paragraph(f"Instructions per request: {why}", look="soft")


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
    """Give a row for each variant, in the order of the table of results."""
    known = {cost.variant: cost for cost in point.judgement.costs}
    rows = ((known.get(name), _cost_row(name, known.get(name))) for name in _in_order(point))
    return [[*row, *([_instructions(cost)] if counted else [])] for cost, row in rows]


def _cost_row(variant: str, cost: CostAtRate | None) -> list[doc.Cell | str]:
    if cost is None:  # such as one that is overloaded, which a warning says
        return [variant, text.MISSING, "", text.MISSING]
    cores = cost.cores_per_1000_rps
    return [
        variant,
        doc.Cell(text.quantity(cores), strong=True),
        doc.Cell(text.quantity_bounds(cores), soft=True),
        text.quantity(cost.requests_per_core_s),
    ]


def _instructions(cost: CostAtRate | None) -> str:
    known = cost.instructions if cost else None
    return text.significant(known.median, 3) if known else text.MISSING


def _rest_rows(point: PointView) -> Rows:
    known = {cost.variant: cost for cost in point.judgement.at_rest}
    return [_rest_row(known[name]) for name in _in_order(point) if name in known]


def _rest_row(cost: CostAtRest) -> list[doc.Cell | str]:
    return [
        cost.variant,
        _share(cost.cpu_share.median),
        text.significant(cost.wake_ups_per_s.median, 3),
        _median(cost.memory_mib, "MiB"),
        _median(cost.connection_kib, "KiB"),
    ]


def _share(of_cpu: float) -> str:
    return text.percent(of_cpu) if of_cpu >= LEAST_SHARE else "0%"


def _median(values: OverRounds | None, unit: str) -> str:
    return f"{text.significant(values.median, 3)} {unit}" if values else text.MISSING


def _in_order(point: PointView) -> list[str]:
    if point.deciding:
        return [row.variant for row in point.deciding.rows]
    return list(point.data.experiment.variants)
