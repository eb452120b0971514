"""`webdyno compare`: two systems and a verdict, or several and their ranks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.experiment_flags import NOTHING_SAID, AskedFlags, asked_systems
from webdyno.interfaces.cli.flags import (
    LAST,
    PLAIN_NEW_RUN,
    ExplainToo,
    NewRunFlags,
    Output,
    Sets,
    flag,
    run_folder,
    settings_of,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue, Override
    from webdyno.core.stack import Site
    from webdyno.launch.caller import Caller

USUAL_SITE = "static"
REST_S = 1.0
"""How long servers are left alone in each round, by --idle."""
THOUSANDS = re.compile(r"0\d\d")
"""No rate begins with a zero: somebody wrote 2,000."""
RATE_KEYS = {"--rate": "rate_per_s", "--rate-per-conn": "rate_per_connection"}


@Parameter(name="*")
@dataclass(frozen=True)
class CostFlags:
    """What servers cost: at a given rate, and while nobody asks them anything."""

    rate: Annotated[
        str | None,
        flag("RATE: which needs less CPU at so many requests/s? Or several: 500,2000."),
    ] = None
    rate_per_conn: Annotated[
        str | None,
        flag("RATE: the same, at so many requests/s of each connection.", rare=True),
    ] = None
    idle: Annotated[
        bool,
        flag("Also show what each uses when idle: CPU, wake-ups, memory."),
        Sets("measure.rest_s", REST_S),
    ] = False

    def overrides(self) -> "Iterator[Override]":
        """Yield them as settings of the experiment; raise UserError where one is none."""
        from webdyno.config import Override
        from webdyno.core.metrics import CPU_TIME

        if self.rate is not None and self.rate_per_conn is not None:
            raise UserError("--rate and --rate-per-conn both give the rate: omit one")
        rates = {"--rate": self.rate, "--rate-per-conn": self.rate_per_conn}
        for name, given in rates.items():
            if given is not None:
                flag = f"{name} {given}"
                yield Override(("load", "loop"), "open", flag)
                yield Override(("measure", "decide_on"), CPU_TIME, flag)
                yield _rates(RATE_KEYS[name], given, flag)
        yield from settings_of(self)


def _rates(key: str, text: str, flag: str) -> "Override":
    """Return the arrival rate; several as levels of a factor."""
    from webdyno.config import Override
    from webdyno.config.checks import FACTORS
    from webdyno.config.reading import written_value

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
        str | None,
        flag("COUNT: requests due at once, at the same rate.", rare=True),
        Sets("load.burst", as_in_toml=True),
    ] = None
    conn_ramp: Annotated[
        str | None,
        flag("DURATION: in which connections begin, one by one.", rare=True),
        Sets("load.connection_ramp_s"),
    ] = None
    kernel_times: Annotated[
        bool,
        flag("Time responses by when the kernel got them.", rare=True),
        Sets("load.kernel_times"),
    ] = False


USUAL_PACE = PaceFlags()


def compare(
    *systems: Annotated[
        str,
        flag(
            "SYSTEM: a stack (nginx), or your own: cmd:COMMAND, rev:REVISION, conf:FILE, "
            "image:NAME, url:URL. NAME=SYSTEM names it. The last one is the baseline."
        ),
    ],
    all_: Annotated[
        bool, flag("Every stack that can serve the site and is built.", "--all")
    ] = False,
    costs: CostFlags = NO_COSTS,
    pace: PaceFlags = USUAL_PACE,
    asked: AskedFlags = NOTHING_SAID,
    explain: ExplainToo = False,
    output: Output = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Compare systems under the same load: a verdict for two, ranks for more.

    For example

        webdyno compare nginx apache-event

        webdyno compare rev:. rev:main --path /api/items     # your app, by webdyno.toml

        webdyno compare 'cmd:gunicorn app:app -b :$PORT' 'cmd:uvicorn app:app --port $PORT'

        webdyno compare new=conf:new.conf old=conf:old.conf --root public

        webdyno compare nginx lighttpd caddy apache-event --path /100KB.txt

        webdyno compare --all --site fortunes --time 15m

        webdyno compare nginx caddy --rate 500,2000 --idle     # what each costs

        webdyno compare nginx caddy --rate 2000 --burst 50     # 50 at once, 40 times a second
    """
    from webdyno.config import Catalogue

    if len(runs := runs_of(systems)) == 2 == len(systems):
        return _show_difference(runs)
    known = Catalogue.load(run.catalog)
    named, asked = asked_systems(systems, known, asked)

    # After the names were looked at: these take a while to import.
    from webdyno.core.registry import EXPLAIN_AFTERWARDS, import_part
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import measure_and_show
    from webdyno.launch.arrangement import arrange, race_of
    from webdyno.media.console import plain_console, print_notice

    if all_:
        if named:
            raise UserError(f"--all: names every stack; omit {', '.join(named)}")
        served = known.site(asked.site or USUAL_SITE)
        named = _all_built(known, served, at_terminal(run.how))
        asked = replace(asked, site=served.name)
    _refuse_too_few(named)
    if run.how.target_is_mine and costs != NO_COSTS:
        raise UserError("--rate… and --idle are about servers here: others' CPU can't be read")
    if why := _nothing_between(named, asked, at_terminal(run.how)):
        print_notice(plain_console(), why)
        return Exit.OK
    more = race_of(named)
    if more.data and explain:
        raise UserError("--explain asks two systems; run `webdyno explain RUN` afterwards for more")
    name, experiment, catalogue = arrange(
        named if more.data else named[::-1],
        asked.read([*costs.overrides(), *settings_of(pace)]),
        known,
        at_terminal(run.how),
        more,
    )
    afterwards = import_part(EXPLAIN_AFTERWARDS)(experiment, run.how) if explain else None
    return measure_and_show(
        name, experiment, catalogue, output, run.how, fail_if=run.fail_if, afterwards=afterwards
    )


def _nothing_between(named: Sequence[str], asked: AskedFlags, caller: "Caller") -> str | None:
    """Return why revisions needn't be measured, and how they are all the same."""
    from webdyno.launch.consent import refuse_own_systems
    from webdyno.systems.changes import nothing_between

    refuse_own_systems({"variants": {"stack": named[0]}}, caller)
    why = None if asked.flags.vary else nothing_between(named, asked.own.dir or Path.cwd())
    if why is None:
        return None
    with_itself = command("compare", named[0], named[0])
    return f"{' '.join(named)}: {why}\n→ {with_itself} compares one with itself"


def _all_built(known: "Catalogue", served: "Site", caller: "Caller") -> list[str]:
    from webdyno.servers.needs import unbuilt

    able = [stack for stack in known.stacks.values() if served in known.sites_for(stack)]
    missing = [stack.name for stack in able if unbuilt([stack])]
    built = [stack.name for stack in able if stack.name not in missing]
    if missing:
        install = command("doctor", "--install", *missing)
        note = f"excluded, because they aren't built: {', '.join(missing)}; {install} builds them"
        if len(built) < 2:
            raise UserError(f"--all: {note}")
        caller.notify(note)
    return built


def runs_of(systems: Sequence[str]) -> list[Path]:
    """Return the folders of runs among systems, `last` included."""
    paths = [Path(system) for system in systems]
    folders = [run_folder(path) if path == LAST else path for path in paths]
    if not any(folder.is_dir() for folder in folders):
        return []  # without an import that takes a while
    from webdyno.measure.folder import HEAD_FILE

    return [folder for folder in folders if (folder / HEAD_FILE).is_file()]


def _show_difference(runs: Sequence[Path]) -> Exit:
    """Show what changed from the earlier to the later of two runs."""
    from webdyno.interfaces.cli.report import diff
    from webdyno.measure.folder import RunFolder

    earlier, later = sorted(runs, key=lambda run: RunFolder.open(run).head.started_at)
    return diff(earlier, later)


def _refuse_too_few(systems: Sequence[str]) -> None:
    from webdyno.measure.folder import HEAD_FILE

    if runs := [system for system in systems if (Path(system) / HEAD_FILE).exists()]:
        raise UserError(f"{runs[0]} is a run's folder; compare takes two of them, or systems")
    if not systems:
        raise UserError("compare takes two systems or more, such as nginx apache-event; or --all")
    if len(systems) == 1:
        alone = command("capacity", systems[0])
        raise UserError(f"compare takes two systems or more; for one: {alone}")
