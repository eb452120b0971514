"""A league as a sheet: a line for each stack at each task."""

import csv
import io

from webdyno.core.base import Interval
from webdyno.league.tables import SHOWN, Results

ENDS = ("estimate", "low", "high")


def sheet_of(results: Results) -> str:
    """Return the figures of a league as CSV."""
    about = {each.name: each for each in results.stacks}
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(
        [
            *("machine", "test", "site", "rate_rps", "connections", "stack", "language", "kind"),
            *("best_rank", "worst_rank", "no_rank_because", "limited_by", "measured_at", "run"),
            *("webdyno_version", "load_generator", "versions", "command"),
            *(f"{metric}_{end}" for metric in SHOWN for end in ENDS),
        ]
    )
    for standing in results.standings:
        for entry in standing.entries:
            rank, stack = entry.rank, about[entry.stack]
            writer.writerow(
                [
                    *(standing.machine, standing.words, standing.site, standing.rate_rps),
                    *(standing.connections, entry.stack, stack.language, stack.kind),
                    *((rank.best, rank.worst) if rank else ("", "")),
                    *(entry.out, entry.limited_by, entry.measured_at.isoformat(), entry.run),
                    *(entry.webdyno_version, entry.load_generator),
                    *(
                        "; ".join(f"{name} {version}" for name, version in entry.versions.items()),
                        entry.command,
                    ),
                    *(end for metric in SHOWN for end in _ends(entry.figures.get(metric))),
                ]
            )
    return sheet.getvalue()


def _ends(interval: Interval | None) -> tuple[object, ...]:
    return (interval.estimate, interval.low, interval.high) if interval else ("", "", "")
