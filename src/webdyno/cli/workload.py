"""`webdyno workload`: the traffic of a log as a load."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from webdyno.cli.console import plain_console, print_table, tell
from webdyno.lab.ending import Exit
from webdyno.model import format as text
from webdyno.model.command import command
from webdyno.model.errors import UserError
from webdyno.model.files import writing
from webdyno.model.workload import Pages, Workload

SLOWEST, FASTEST = 1e-6, 1e6
FEW_RPS, ENOUGH_RPS = 10.0, 100.0
"""Below the first many slots of a run have no request; the second is proposed."""


def workload(
    logs: Annotated[
        list[Path],
        Parameter(
            name="LOG",
            help="Access logs of nginx, Apache, Caddy, Traefik, Envoy, HAProxy, IIS, CloudFront or "
            "Amazon's load balancers, or a HAR file; packed by gzip, bzip2 or xz as well. "
            "-: standard input.",
            allow_leading_hyphen=True,
        ),
    ],
    /,
    *,
    output: Annotated[Path, Parameter(name=["-o", "--output"], help="The file to write.")] = Path(
        "traffic.toml"
    ),
    twin: Annotated[
        Path | None,
        Parameter(
            help="A folder to write a catalogue to with a twin of the site: made-up files with the "
            "log's paths and sizes, for --catalog FOLDER --site twin."
        ),
    ] = None,
    twin_of: Annotated[
        Literal["pages", "files"],
        Parameter(
            help="pages: where the log knows that responses took time, the twin has pages of PHP "
            "or Node.js that cost as much CPU time; files: it is all static."
        ),
    ] = "pages",
    replay: Annotated[
        Path | None,
        Parameter(
            help="A file to write the log's own timetable to, for loads that ask again just what "
            "was asked, when it was: --set load.arrivals=replay."
        ),
    ] = None,
    loop: Annotated[
        Literal["open", "closed"],
        Parameter(help="open: requests come at the log's rate; closed: visitors with pauses."),
    ] = "open",
    speed: Annotated[float, Parameter(help="How many times as fast as in the log.")] = 1.0,
    from_: Annotated[
        str | None,
        Parameter(name="--from", help="Exclude what came before, such as 2026-11-22T08:00+01:00"),
    ] = None,
    to: Annotated[
        str | None,
        Parameter(name="--to", help="Exclude what came then or later; UTC unless it says."),
    ] = None,
    methods: Annotated[
        str, Parameter(help="Requests that are taken; a log has no bodies to send.")
    ] = "GET,HEAD",
    queries: Annotated[
        Literal["drop", "hash", "keep"],
        Parameter(help="What is done with what follows a ? in addresses."),
    ] = "drop",
    path_parts: Annotated[
        Literal["hash", "keep"],
        Parameter(
            help="What is done with parts of paths that look like e-mail addresses, tokens or "
            "numbers of people."
        ),
    ] = "hash",
    force: Annotated[bool, Parameter(help="Write over a file that is there.")] = False,
) -> Exit:
    """Make a load of the traffic in a log, and say how well the two agree.

    Addresses and agents are hashed with a salt that is thrown away; nothing else of visitors is
    kept. What the file has is described in docs/workload.md.

    For example

        webdyno workload access.log -o traffic.toml

        webdyno duel conf:new.conf conf:old.conf --root public --requests traffic.toml

        webdyno workload access.log --twin copy

        webdyno duel nginx apache-event --catalog copy --site twin --requests traffic.toml

        webdyno workload access.log access.log.1 access.log.2.gz

        kubectl logs deploy/ingress | webdyno workload -

        webdyno workload access.log.gz --from 2026-11-22T18:00 --to 2026-11-22T19:00 --speed 10

        webdyno workload access.log --replay traffic.replay

        webdyno duel conf:new.conf conf:old.conf --root public --requests traffic.toml --vary
        load.arrivals=poisson,replay
    """
    from webdyno.workload.log import LogSelection
    from webdyno.workload.privacy import Privacy
    from webdyno.workload.read import check_is_file, read_logs
    from webdyno.workload.traffic import Manner, traffic_of
    from webdyno.workload.twin import NAME, write_twin

    for log in logs:
        if str(log).startswith("-") and str(log) != "-":
            raise UserError(f"Unknown option: {log}; webdyno workload --help has them all")
        check_is_file(log)
    for written in (output, replay):
        if written is not None and written.exists() and not force:
            raise UserError(f"{written} is there already; --force writes over it")
    if replay is not None and loop == "closed":
        raise UserError("--replay: a timetable is an open loop's; omit --loop closed")
    if not SLOWEST <= speed <= FASTEST:
        raise UserError(f"--speed {speed:g}: should be from {SLOWEST:g} to {FASTEST:g}")
    wanted = LogSelection(
        methods=_methods(methods),
        from_s=_moment("--from", from_, 0.0),
        to_s=_moment("--to", to, float("inf")),
    )
    if wanted.from_s >= wanted.to_s:
        raise UserError(f"--from {from_} --to {to}: the end should be after the beginning")
    with _progress() as progress:
        read = read_logs(logs, wanted, Privacy(queries, path_parts), progress)
    named = None if replay is None else os.path.relpath(replay, output.parent)
    traffic = traffic_of(
        read, Manner(loop, speed), twin=twin_of if twin else None, replay_file=named
    )
    _write(output, [traffic.text])
    if replay is not None and traffic.replay is not None:
        _write(replay, traffic.replay.written())
    served: list[str] = []
    if twin is not None and traffic.twin is not None:
        write_twin(twin, traffic.twin)
        served = ["--catalog", str(twin), "--site", NAME]
    for bad in read.bad:
        tell(f"{bad.file}:{bad.line}: {bad.why}")
    _print(traffic.workload)
    for note in read.notes:
        tell(f"note: {note}")
    if loop == "open":
        _tell_few(traffic.workload.arrivals.rate_per_s, speed)
    duel = command("duel", "A", "B", *served, "--requests", str(output))
    tell(f"{output} has the load: {duel}")
    if traffic.workload.pages:
        tell(
            "stacks with PHP or Node.js serve this twin; --twin-of files makes one for all of them"
        )
    if replay is not None:
        both = "--vary load.arrivals=poisson,replay"
        tell(f"{replay} has the log's own timetable; to measure with both: {duel} {both}")
    return Exit.OK


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show on a terminal how far reading is."""
    with plain_console(stderr=True).status("reading") as status:
        yield lambda name, line, requests: status.update(
            f"{name}: line {text.number(line)}, {text.count(requests, 'request')}"
        )


def _write(path: Path, lines: Iterable[str]) -> None:
    with writing(path), path.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def _methods(given: str) -> list[str]:
    names = given.upper().split(",")
    for name in names:
        if not re.fullmatch("[A-Z]{1,20}", name) or name in {"CONNECT", "TRACE"}:
            raise UserError(f"--methods {given}: {name!r:.40} is no method that asks for a page")
    return names


def _moment(flag: str, given: str | None, unless: float) -> float:
    from webdyno.workload.access import moment_of

    try:
        return moment_of(given) if given else unless
    except (ValueError, OverflowError):
        raise UserError(
            f"{flag} {given}: is no time such as 2026-11-22T18:00 or 2026-11-22T18:00+01:00"
        ) from None


def _tell_few(rate_rps: float, speed: float) -> None:
    """Say how a run gets enough requests where the load has too few."""
    if 0 < rate_rps * speed < FEW_RPS and (enough := ENOUGH_RPS / rate_rps) <= FASTEST:
        tell(
            f"note: the load asks for {text.significant(rate_rps * speed)} requests a second, too "
            f"few for a run of minutes. --speed {enough:.0f} asks for {ENOUGH_RPS:.0f}"
        )


def _print(found: Workload) -> None:
    facts = Table.grid(padding=(0, 2))
    for name, said in _facts(found):
        facts.add_row(name, said)
    agrees = {True: "agree", False: "differ", None: "inconclusive"}
    rows = [(it.what, _value(it.log), _value(it.load), agrees[it.agrees]) for it in found.fidelity]
    console = plain_console()
    console.print(facts)
    console.print("\nHow well the load agrees with the log")
    print_table(("", "log", "load", ""), rows, ("log", "load"))


def _value(value: float | None) -> str:
    return text.MISSING if value is None else text.significant(value)


def _facts(found: Workload) -> Iterator[tuple[str, str]]:
    popularity, sessions, arrivals = found.popularity, found.sessions, found.arrivals
    yield "requests", f"{text.number(found.requests)} in {text.duration(arrivals.span_s)}"
    yield "rate", f"{text.significant(arrivals.rate_per_s)} per second"
    yield (
        "methods",
        ", ".join(f"{name} {text.percent(share)}" for name, share in found.methods.items()),
    )
    law = (
        f"Zipf's law, exponent {popularity.zipf:.3f} ± {popularity.zipf_error:.3f}"
        if popularity.kind == "zipf"
        else "shares of their own; Zipf's law tells them worse by "
        f"{popularity.zipf_loss_nats:.2f} nats per request"
    )
    yield "paths", f"{text.number(popularity.paths)}, by {law}"
    size = found.response_bytes
    yield "responses", f"{text.size(size.mean)} on average, 9 of 10 within {text.size(size.p90)}"
    yield (
        "sessions",
        f"{text.number(sessions.sessions)} of {text.number(sessions.clients)} clients, "
        f"{text.significant(sessions.requests.mean)} requests each"
        + (f", {text.duration(sessions.pause_s.mean)} between" if sessions.pause_s else ""),
    )
    if made := found.pages:
        yield "pages", _pages(made)
    kept = found.connections
    yield (
        "connections",
        f"{text.percent(kept.kept_share)} of requests on one that was kept"
        if kept
        else "the log doesn't tell whether they were kept",
    )
    yield from (("excluded", f"{text.number(it)} {why}") for why, it in found.excluded.items())
    yield "hidden", "addresses and agents hashed; users, referers, other headers dropped"
    yield from (("hidden", f"{text.number(it)} {what}") for what, it in found.hidden.items())


def _pages(made: Pages) -> str:
    return (
        f"{text.count(made.paths, 'path')}, {text.percent(made.share)} of requests, "
        f"{text.duration(made.cpu_s)} of CPU time each, "
        f"{text.significant(made.busy_cpus)} CPUs at the load's rate"
    )
