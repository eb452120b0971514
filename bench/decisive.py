"""Does webdyno come to an answer? Duels of stacks of the catalogue, with defaults only.

webdyno runs as a user runs it. Each run adds a line to the file of results; the table is made of
the last line of each duel. Intervals are worst-case CIs, on which verdicts rest. An
inconclusive duel counts as an answer when that excludes differences of more than 5%.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome, settings_in
from rig.options import count
from rig.script import Script, progress
from webdyno.comparison.comparison import MOST_EXCLUDED, WITHOUT_DIFFERENCE
from webdyno.core.format import between
from webdyno.core.judgement import Verdict
from webdyno.statistics.verdict import ruled_out_difference

EXAMPLES = """\
  all duels, once (an hour)
    .venv/bin/python bench/decisive.py
  the third and the fourth of them
    .venv/bin/python bench/decisive.py --first 3 --last 4
  only the table of what is there
    .venv/bin/python bench/decisive.py --table
"""

RESULTS = Path("bench/results/decisive.jsonl")

DUELS = (
    "nginx apache-event",
    "nginx apache-worker",
    "nginx apache-prefork",
    "nginx-memcached nginx",
    "lighttpd nginx",
    "caddy nginx",
    "node nginx",
    "nginx apache-event --path /1MB.txt",
    "lighttpd apache-prefork --path /1MB.txt",
    "nginx-phpfpm apache-prefork-modphp --site hello-php",
    "apache-event-phpfpm nginx-phpfpm --site hello-php",
    "nginx-front-apache apache-prefork-modphp --site hello-php",
    "nginx-proxy-cache varnish-front --site hello-php",
    "varnish-front nginx-phpfpm --site frontpage",
    "nginx-phpfpm-cache nginx-phpfpm --site frontpage",
    "apache-prefork-modphp nginx-phpfpm --site frontpage",
    "node nginx-phpfpm --site spin",
    "puma-redis thin-redis --site retwis",
    (
        "nginx-phpfpm apache-prefork-modphp --site hello-php "
        "--set variants.nginx-phpfpm.memory=512MB --set variants.apache-prefork-modphp.memory=512MB"
    ),
    "redis redis --site keys --path /get --generator redis-benchmark",
    "nginx nginx",
    "apache-event apache-event",
    "haproxy-front nginx-phpfpm --site hello-php",
    "nginx-phpfpm nginx-phpfpm --site hello-php",
)
"""Every stack that needs no build; slow pages, 1 MB files, memory limits, four stacks against
themselves.

The questions are fixed; how they are measured is left to webdyno's defaults. Redis speaks no HTTP,
so its own benchmark asks it.
"""


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("--first", type=count, default=1, help="begin with this duel (1)")
    made.add_argument(
        "--last", type=count, default=len(DUELS), help=f"end with this one ({len(DUELS)})"
    )
    made.add_argument("--table", action="store_true", help="run nothing")
    made.add_argument(
        "--results", type=Path, default=RESULTS, help=f"the file that grows ({RESULTS})"
    )
    return made


def work(options: Namespace, console: Console) -> None:
    """Run the duels that were requested, then show the last result of each."""
    for duel in () if options.table else DUELS[options.first - 1 : options.last]:
        found = lab.run_lab(duel, asked(duel))
        lab.append(options.results, found)
        progress.print(f"{duel}: {verdict(found)}, {found.took_s:.0f} s", markup=False)
    console.print(table(lab.read(options.results)))


def asked(duel: str) -> Call:
    """Give what webdyno is asked."""
    system, baseline, *words = duel.split()
    flags = list(zip(words[::2], words[1::2], strict=True))
    settings = settings_in(value for flag, value in flags if flag == "--set")
    served: dict[str, object] = {
        flag.removeprefix("--"): value for flag, value in flags if flag != "--set"
    }
    if path := served.pop("path", None):
        served["paths"] = [path]
    if generator := served.pop("generator", None):
        settings["generator"] = generator
    systems = {"system": system, "baseline": baseline}
    return Call("compare", {**systems, **served, "settings": settings})


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show the last result of each duel, and how many came to an answer."""
    last = {found.case: found for found in outcomes}
    known = [last[duel] for duel in DUELS if duel in last]
    answers = sum(map(answered, known))
    made = Table(
        title=f"{answers} of {len(known)} duels came to an answer",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("duel", overflow="fold")
    for heading in ("verdict", "ratio", "interval", "s"):
        made.add_column(heading, justify="right")
    made.add_column("warnings", overflow="fold")
    for found in known:
        made.add_row(
            found.case,
            verdict(found),
            f"{found.ratio.estimate:.3g}" if found.ratio else "–",
            shown(found),
            f"{found.took_s:.0f}",
            ", ".join(dict.fromkeys(it.partition(":")[0] for it in found.warnings)),
        )
    return made


def verdict(found: Outcome) -> str:
    """Name the verdict, or say why there is none."""
    return found.verdict or found.problem


def answered(found: Outcome) -> bool:
    """Whether it says something: a verdict, or that no larger difference than 5% is possible."""
    if found.verdict is Verdict.INCONCLUSIVE:
        return found.decisive is not None and ruled_out_difference(found.decisive) <= MOST_EXCLUDED
    return found.verdict not in {None, Verdict.INVALID}


def shown(found: Outcome) -> str:
    """Write the worst-case CI, or what it excludes where that is the answer."""
    if found.decisive is None:
        return "–"
    if found.verdict in WITHOUT_DIFFERENCE:
        return f"no more than {ruled_out_difference(found.decisive):.1%}"
    return between(found.decisive)


if __name__ == "__main__":
    sys.exit(script().run(work))
