"""Does `webdyno explain --advice --try` name the cause? Servers made worse in one thing.

For each case webdyno measures the server as it is against the one with a setting that is known to
cost, then is asked for advice on the latter, without a word about what was done to it. The cause is
named where the setting that was planted comes first of those whose gain is sure. In some cases
nothing was planted: there nothing may be claimed. Each run adds a line to the file of results; the
table shows the last one of each case.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call
from rig.script import Script, progress
from webdyno.comparison import judge
from webdyno.config.reading import shown_value
from webdyno.core.base import Interval
from webdyno.core.findings import Gain
from webdyno.core.setting import SettingValue
from webdyno.measure.folder import RunFolder

EXAMPLES = """\
  all cases, once (40 minutes, or more where a case is too noisy)
    .venv/bin/python bench/causes.py
  two of them
    .venv/bin/python bench/causes.py --cases htaccess,backlog
  only the table of what is there
    .venv/bin/python bench/causes.py --rounds 0
"""

RESULTS = Path("bench/results/causes.jsonl")
CATALOGUE = Path(__file__).parent / "rig" / "dialed"
SLOW, GOOD = "slow", "good"
"""Of the run that advice is asked about: it only has to show what the slow one is like."""


@dataclass(frozen=True)
class Case:
    """A server, and what was made worse of it."""

    stack: str
    site: str
    path: str
    planted: Mapping[str, SettingValue]
    """Of the slow one alone; empty: nothing."""
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    """Of both."""
    load: Sequence[str] = ()
    """Lines of [load]."""
    decide_on: str = "throughput_rps"
    budget: str = "90s"
    """Of `why`, which ends when it knows: more where many or slow servers are tried."""


CACHED: Mapping[str, SettingValue] = {"open_file_cache": True}
KEPT: Mapping[str, SettingValue] = {"upstream_keepalive": 16}
GZIP = ('headers.Accept-Encoding = "gzip"',)
NEW_CONNECTIONS = ('keepalive = "never"',)

CASES: dict[str, Case] = {
    "htaccess": Case("apache-event", "static", "/hello.txt", {"allow_override": True}),
    "access log (apache)": Case("apache-event", "static", "/hello.txt", {"access_log": True}),
    "access log (nginx)": Case("nginx", "static", "/hello.txt", {"access_log": True}, CACHED),
    "no sendfile": Case("nginx", "static", "/1MB.txt", {"sendfile": False}, CACHED),
    "files opened again": Case("nginx", "static", "/hello.txt", {"open_file_cache": False}, CACHED),
    "gzip level": Case(
        "nginx", "static", "/100KB.txt", {"gzip_level": 9}, {**CACHED, "gzip": True}, GZIP
    ),
    "too few workers": Case("nginx-phpfpm", "waiting", "/", {"children": 1}, KEPT),
    "too many workers": Case("nginx", "static", "/hello.txt", {"workers": 64}, CACHED),
    "no OPcache (php-fpm)": Case(
        *("nginx-phpfpm", "wordpress", "/", {"opcache": False}, KEPT),
        decide_on="server_cpu_us",  # compiling is CPU time, of which little else takes a part
        budget="6m",
    ),
    "no OPcache (mod_php)": Case(
        *("apache-prefork-modphp", "hello-php", "/hello.php", {"opcache": False}),
        decide_on="server_cpu_us",
        budget="3m",
    ),
    "backend not kept": Case(
        *("haproxy-front", "hello-php", "/hello.php", {"upstream_keepalive": False}),
        decide_on="server_cpu_us",
        budget="6m",
    ),
    "php-fpm by TCP": Case("nginx-phpfpm", "hello-php", "/hello.php", {"fastcgi": "tcp"}, KEPT),
    "Nagle": Case("nginx", "static", "/hello.txt", {"tcp_nodelay": False}),
    "no TLS resumption": Case(
        *("nginx", "static", "/hello.txt", {"tls_resumption": False}),
        {**CACHED, "tls_key": "rsa"},  # what a session saves is the signature
        ('protocol = "https"', *NEW_CONNECTIONS),
        decide_on="server_cpu_us",  # the client has as much to do
    ),
    "backlog": Case("nginx", "static", "/hello.txt", {"backlog": 32}, CACHED, NEW_CONNECTIONS),
    "nothing (nginx)": Case("nginx", "static", "/hello.txt", {}, CACHED),
    "nothing (apache)": Case("apache-event", "static", "/hello.txt", {}),
    "nothing (php-fpm)": Case("nginx-phpfpm", "hello-php", "/hello.php", {}, KEPT),
}


class Named(lab.Kept):
    """What was found to be the cause."""

    ratio: Interval | None = None
    """Of the slow one's throughput and the other's."""
    gains: list[Gain] = []

    @property
    def sure(self) -> list[Gain]:
        """Those that are sure, the largest first."""
        return sorted((it for it in self.gains if it.is_sure), key=lambda it: -it.ratio.estimate)

    @property
    def is_right(self) -> bool:
        """Whether what was planted comes first, or nothing is claimed where nothing was."""
        planted = CASES[self.case].planted
        first = [it.advice.setting for it in self.sure[:1]]
        return not self.problem and first == list(planted)


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show the last result of each case."""
    for _ in range(options.rounds):
        for name in options.cases:
            found = name_cause(name)
            lab.append(options.results, found)
            progress.print(line(found), markup=False)
    console.print(table(lab.read_as(options.results, Named)))


def name_cause(name: str) -> Named:
    """Measure a case, and ask for advice."""
    begun = lab.Begun.now(name)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        experiment, folder = Path(scratch) / "case.toml", Path(scratch) / "run"
        experiment.write_text(written(name, CASES[name]), encoding="utf-8")
        problem = measured(experiment, folder, budget="25s").made()
        if not problem:
            of_it = {"folder": folder, "variants": [SLOW], "time": CASES[name].budget, "yes": True}
            problem = Call("try_advice", of_it).made()
        kept = begun.kept(problem=problem)
        return Named(**{**kept, **_found(folder)})


def measured(experiment: Path, folder: Path, budget: str) -> Call:
    """Have an experiment measured for so long and no longer, in a folder."""
    arguments = {"experiment": experiment, "output": folder, "time": budget, "yes": True}
    settings = {"measure.patience": 1}
    return Call("run_experiment", {**arguments, "catalog": [CATALOGUE], "settings": settings})


def written(name: str, case: Case) -> str:
    """Give the experiment: the slow server and the other one."""
    lines = [f'title = "Planted: {name}"', 'question = "Is it slower?"', f'site = "{case.site}"']
    lines += ["[measure]", f'decide_on = "{case.decide_on}"']
    lines += ["[load]", f'paths = ["{case.path}"]', *case.load]
    for variant, settings in ((GOOD, case.settings), (SLOW, {**case.settings, **case.planted})):
        lines += [f"[variants.{variant}]", f'stack = "{case.stack}"']
        lines += [f"settings.{setting} = {_toml(value)}" for setting, value in settings.items()]
    return "\n".join(lines) + "\n"


def _toml(value: SettingValue) -> str:
    return f'"{value}"' if isinstance(value, str) else shown_value(value)


def _found(folder: Path) -> dict[str, object]:
    if not (folder / "slots.jsonl").exists():
        return {}
    run = RunFolder.open(folder)
    compared = judge(run.data().points[0]).comparisons
    reported: dict[str, object] = {"ratio": compared[0].decisive if compared else None}
    if (folder / "explain" / f"advice-{SLOW}").exists():
        tried = RunFolder.open(folder / "explain" / f"advice-{SLOW}")
        reported["gains"] = judge(tried.data().points[0]).gains
    return reported


def line(found: Named) -> str:
    """Report one run."""
    if found.problem:
        return f"{found.case}: {found.problem}"
    return f"{found.case}: {_claims(found)}, {found.took_s:.0f} s"


def _claims(found: Named) -> str:
    return "; ".join(map(_claim, found.sure)) or "nothing"


def _claim(gain: Gain) -> str:
    worth = f"{gain.ratio.estimate:.3g} ({gain.ratio.low:.3g} to {gain.ratio.high:.3g})"
    return f"{gain.advice.setting} = {shown_value(gain.advice.tried)}: {worth}"


def table(outcomes: Sequence[Named]) -> Table:
    """Show the last run of each case."""
    last = {found.case: found for found in outcomes if found.case in CASES}
    right = sum(found.is_right for found in last.values())
    made = Table(
        title=f"{right} of {len(last)} causes named, or rightly none",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("planted")
    made.add_column("slow against good", justify="right")
    made.add_column("claimed", overflow="fold")
    made.add_column("right")
    made.add_column("tried", justify="right")
    made.add_column("s", justify="right")
    for name in CASES:
        if (found := last.get(name)) is None:
            continue
        made.add_row(
            name,
            f"{found.ratio.estimate:.3g}" if found.ratio else "–",
            found.problem or _claims(found),
            "yes" if found.is_right else "no",
            str(len(found.gains)),
            f"{found.took_s:.0f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
