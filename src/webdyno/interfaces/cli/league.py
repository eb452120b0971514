"""`webdyno league`: many stacks ranked at many tasks, and the pages that show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.flags import (
    PLAIN_RUN,
    USUAL_TIME,
    CatalogDirs,
    Overrides,
    RunFlags,
    TimeFlag,
    flag,
    parse_duration_s,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Catalogue
    from webdyno.launch.caller import Caller
    from webdyno.league.measuring import Sitting
    from webdyno.league.records import LeagueFolder
    from webdyno.league.task import Task

PAGES = "pages"
SITTING_S = 2 * 3600.0
DAYS = "d"
JUDGING = "judging the league's runs, some seconds for each"


@Parameter(name="*")
@dataclass(frozen=True)
class Selection:
    """What a league is about: each stack at each task that it can serve."""

    stacks: Annotated[
        str | None, flag("STACK,…: which are ranked [default: all that are built]")
    ] = None
    sites: Annotated[
        str | None,
        flag("SITE,…: [default: plaintext,json,fortunes,queries,updates,upload]"),
    ] = None
    loads: Annotated[str, flag("full,rate: at full speed, at a common rate, or both.")] = (
        "full,rate"
    )
    rate: Annotated[float, flag("NUMBER: requests/s that all get, for rate.")] = 200.0


ALL = Selection()


def league(
    *,
    site: Annotated[Path | None, flag("DIR: only write the pages of a league, there.")] = None,
    check: Annotated[
        Path | None, flag("DIR: check an entry, which is a catalog; see the guide.")
    ] = None,
    selection: Selection = ALL,
    older_than: Annotated[str, flag("DURATION: measure again what is older, as 30d.")] = "30d",
    time: TimeFlag = USUAL_TIME,
    set_: Overrides = (),
    catalog: CatalogDirs = (),
    output: Annotated[
        Path | None, flag("DIR: folder of the league [default: league]", "-o", "--output")
    ] = None,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Rank many stacks at many tasks, a sitting at a time, and write the pages that show it.

    What is missing or old is measured in rankings of about ten stacks, which share two with earlier
    ones. --time ends a sitting (2 h); the next one continues, after Ctrl-C as well. Results lie in
    league/, by machine, and are never mixed with another machine's; the pages are league/pages/.

    For example

        webdyno league --stacks nginx,caddy,lighttpd --sites static --loads full --time 5m

        webdyno league --time 2h                # all that are built; again to continue

        webdyno league --site pages             # only the pages, elsewhere

        webdyno league --check my-entry         # is it fit to be in the league?
    """
    from webdyno.config import Catalogue
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.league.records import LEAGUE_FOLDER

    folder = output or LEAGUE_FOLDER
    if site is not None:
        return _write_pages(folder, site, Catalogue.load(catalog))
    if check is not None:
        from webdyno.league.entry import check_entry

        return _show_check(check, check_entry(check, catalog, at_terminal(how), time.seconds))
    known = Catalogue.load(catalog)
    caller = at_terminal(how)
    tasks = _tasks(selection, known, caller)
    sitting = _sitting(folder, tasks, known, caller, set_, older_than, time.seconds or SITTING_S)
    return _sit(sitting)


def _tasks(selection: Selection, known: "Catalogue", caller: "Caller") -> "dict[Task, list[str]]":
    """Return by task the stacks that can serve it and are built; raise UserError for none."""
    from webdyno.core.question import FEWEST_IN_RACE
    from webdyno.league.task import AT_RATE, FULL, LOADS, SITES, Task
    from webdyno.servers.needs import unbuilt

    loads = _names(selection.loads)
    if unknown := [load for load in loads if load not in LOADS]:
        raise UserError(f"--loads {unknown[0]}: should be {FULL}, {AT_RATE} or both")
    wanted = [known.stack(name) for name in _names(selection.stacks)] or list(known.stacks.values())
    missing = [stack.name for stack in wanted if unbuilt([stack])]
    if missing:
        install = command("doctor", "--install", *missing)
        caller.notify(f"excluded, because they aren't built: {', '.join(missing)}; {install}")
    tasks: dict[Task, list[str]] = {}
    for site in [known.site(name) for name in _names(selection.sites) or SITES]:
        able = [
            stack.name
            for stack in wanted
            if stack.name not in missing and site in known.sites_for(stack)
        ]
        if len(able) < FEWEST_IN_RACE:
            caller.notify(f"{site.name}: excluded, as fewer than {FEWEST_IN_RACE} stacks serve it")
            continue
        for load in loads:
            tasks[Task(site.name, selection.rate if load == AT_RATE else None)] = able
    if not tasks:
        raise UserError("a league takes three stacks or more that serve the same site")
    return tasks


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _age(text: str) -> timedelta:
    if text.endswith(DAYS) and text.removesuffix(DAYS).isdecimal():
        return timedelta(days=int(text.removesuffix(DAYS)))
    return timedelta(seconds=parse_duration_s(text, "--older-than"))


def _sitting(
    folder: Path,
    tasks: "dict[Task, list[str]]",
    known: "Catalogue",
    caller: "Caller",
    overrides: Sequence[str],
    older_than: str,
    time_s: float,
) -> "Sitting":
    from webdyno.config import read_overrides
    from webdyno.host.this_machine import Testbed
    from webdyno.interfaces.cli.result import show_result
    from webdyno.league.measuring import Sitting
    from webdyno.league.records import LeagueFolder
    from webdyno.league.task import Asking

    return Sitting(
        LeagueFolder(folder),
        Asking(known, caller, read_overrides(overrides)),
        tasks,
        Testbed().describe(),
        _age(older_than),
        monotonic() + time_s,
        lambda measured: show_result(measured.folder, report=False),
    )


def _sit(sitting: "Sitting") -> Exit:
    """Measure what is missing, say what is known and what is missing then, and write the pages."""
    from webdyno.league.measuring import words_of
    from webdyno.media.console import notify, plain_console

    with plain_console(stderr=True).status(JUDGING):
        lacks = sitting.lacks()
    notify(words_of(lacks))
    finished = sitting.measure_all()
    left = sitting.lacks()
    console = plain_console()
    console.print()
    for words in sitting.headlines():
        console.print(words, soft_wrap=True)
    console.print(f"\n{words_of(left)}", soft_wrap=True)
    if written := _pages_of(sitting.folder, sitting.folder.path / PAGES, sitting.asking.catalogue):
        console.print(f"Pages: {written[0]}", soft_wrap=True)
    if sitting.failures:
        notify("failed:\n" + "\n".join(sitting.failures))
    if not finished:
        notify("interrupted; the same command continues")
        return Exit.INTERRUPTED
    return Exit.FAILED if sitting.failures else Exit.OK


def _write_pages(folder: Path, site: Path, known: "Catalogue") -> Exit:
    """Write the pages of a league; raise UserError where there is none."""
    from webdyno.league.records import LeagueFolder
    from webdyno.media.console import plain_console

    if str(site) in known.sites and not site.exists():
        raise UserError(f"--site {site}: is where pages are written; --sites {site} selects a site")
    with plain_console(stderr=True).status(JUDGING):
        written = _pages_of(LeagueFolder(folder), site, known)
    if not written:
        measure = command("league", "--time", "2h")
        raise UserError(f"{folder}: there is no finished run of a league; {measure} measures one")
    plain_console().print(f"{len(written)} files; open {written[0]}", soft_wrap=True)
    return Exit.OK


def _pages_of(league: "LeagueFolder", site: Path, known: "Catalogue") -> list[Path]:
    """Write a league's pages, and return them, the first page first; none without a result."""
    from webdyno.league.pages import Pages
    from webdyno.league.tables import results_of
    from webdyno.media.console import notify

    results = results_of(league, known)
    for why in league.passed_over.values():
        notify(f"passed over: {why}")
    below = league.path if site.is_relative_to(league.path) else site
    return Pages(results, known).write(site, below) if results.standings else []


def _show_check(entry: Path, remarks: "Sequence[str]") -> Exit:
    """Say what speaks against an entry."""
    from webdyno.media.console import plain_console

    console = plain_console()
    if not remarks:
        console.print(f"{entry}: fit to be in the league", soft_wrap=True)
        return Exit.OK
    console.print(f"{entry}: not yet fit to be in the league", soft_wrap=True)
    for each in remarks:
        console.print(f"- {each}", soft_wrap=True)
    return Exit.INVALID
