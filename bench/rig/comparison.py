"""The table of one case: every client beside the reference and the floor, and the goals."""

import statistics
from collections.abc import Mapping, Sequence

from rich.table import Table

from rig.cases import EARLIER, EARLIER_GOAL, Case
from rig.samples import Ratio, Sample, missed_rate, ratio


def comparison(
    case: Case, samples: Sequence[Sample], absent: Mapping[str, str], duration_s: float
) -> Table:
    """Make the table; `absent` says of each client that was not run why."""
    table = Table(
        title=case.title, title_justify="left", title_style="bold", caption_justify="left"
    )
    table.add_column("client")
    for heading in ("CPU µs/request", f"x {case.reference}", f"x {case.floor or 'floor'}"):
        table.add_column(heading, justify="right")
    for heading in ("req/s", "CPU", "rounds"):
        table.add_column(heading, justify="right")
    table.add_column("remark", overflow="fold")
    for client in dict.fromkeys(each.client for each in sorted(samples, key=lambda s: s.cpu_us)):
        own = [each for each in samples if each.client == client]
        good = [each for each in own if each.problem is None]
        table.add_row(
            client,
            *_cost(good),
            _shown(ratio(samples, client, case.reference)),
            _shown(ratio(samples, client, case.floor) if case.floor else None),
            *_rates(good),
            f"{len(good)}/{len(own)}",
            _remark(case, own, good, duration_s),
        )
    if samples:
        others = [each.others for each in samples]
        table.caption = (
            f"others had the client's core for {statistics.median(others):.0%} of the time, "
            f"at most {max(others):.0%}"
        )
    for client, reason in absent.items():
        table.add_row(client, *["-"] * 6, reason)
    return table


def _cost(good: Sequence[Sample]) -> list[str]:
    if not good:
        return ["-"]
    costs = [each.cpu_us for each in good]
    return [f"{statistics.median(costs):.2f} [{min(costs):.2f} - {max(costs):.2f}]"]


def _rates(good: Sequence[Sample]) -> list[str]:
    if not good:
        return ["-", "-"]
    rate_rps = statistics.median(each.rate_rps for each in good)
    busy = statistics.median(each.busy for each in good)
    return [f"{rate_rps:,.0f}", f"{busy:.0%}"]


def _shown(found: Ratio | None) -> str:
    if found is None:
        return "-"
    return f"{found.median:.2f} [{found.low:.2f} - {found.high:.2f}]"


def _remark(case: Case, own: Sequence[Sample], good: Sequence[Sample], duration_s: float) -> str:
    remarks = list(dict.fromkeys(each.problem for each in own if each.problem))
    achieved_rps = missed_rate(case, good, duration_s)
    if achieved_rps is not None:
        remarks.append(f"missed the rate: {achieved_rps:,.0f}/s")
    return "; ".join(remarks)


def goals(case: Case, samples: Sequence[Sample]) -> list[str]:
    """Say for each goal of loadgen whether it was reached in these samples."""
    lines = []
    wanted = [("loadgen", *goal) for goal in (case.goals | {EARLIER: EARLIER_GOAL}).items()]
    wanted += [
        (f"loadgen-{budget}", case.reference, highest)
        for budget, highest in case.budget_goals.items()
    ]
    for client, reference, highest in wanted:
        found = ratio(samples, client, reference)
        if found is None:
            continue
        lines.append(
            f"goal: {client} at most {highest:.2f} x {reference}: {found.verdict(highest)}; "
            f"median {found.median:.2f}, {found.confidence:.0%} interval "
            f"{found.low:.2f} - {found.high:.2f}, {found.rounds} rounds"
        )
    return lines
