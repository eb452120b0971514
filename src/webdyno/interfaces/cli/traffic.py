"""`webdyno traffic`: the traffic of a log as a load."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.flags import flag

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.traffic.workload import Workload

PRIVATE, SHARED = 0o600, 0o666
"""Modes of files: for their owner alone, and as the caller's umask has it."""
SLOWEST, FASTEST = 1e-6, 1e6
FEW_RPS, ENOUGH_RPS = 10.0, 100.0
"""Below the first many slots of a run have no request; the second is proposed."""


def traffic(
    logs: Annotated[
        list[Path],
        Parameter(
            name="LOG",
            help="LOG: access logs of servers and load balancers, or a HAR file; also packed. "
            "-: standard input.",
            allow_leading_hyphen=True,
        ),
    ],
    /,
    *,
    output: Annotated[Path, flag("FILE: where the load is written.", "-o", "--output")] = Path(
        "traffic.toml"
    ),
    twin: Annotated[
        Path | None, flag("DIR: write a catalog with made-up files of the log's paths and sizes.")
    ] = None,
    twin_of: Annotated[
        Literal["pages", "files"],
        flag("KIND: pages (PHP, Node.js) that cost CPU time as in the log, or files."),
    ] = "pages",
    replay: Annotated[
        Path | None,
        flag("FILE: write the log's own timetable, for load.arrivals=replay.", rare=True),
    ] = None,
    loop: Annotated[
        Literal["open", "closed"],
        flag("KIND: open: at the log's rate; closed: visitors with pauses."),
    ] = "open",
    speed: Annotated[float, flag("FACTOR: how many times as fast as in the log.")] = 1.0,
    from_: Annotated[str | None, flag("MOMENT: omit what came before.", "--from")] = None,
    to: Annotated[
        str | None, flag("MOMENT: omit what came then or later; UTC unless it says.")
    ] = None,
    methods: Annotated[
        str, flag("NAME,…: methods that are taken; a log has no bodies.")
    ] = "GET,HEAD",
    queries: Annotated[
        Literal["drop", "hash", "keep"], flag("HOW: drop, hash or keep queries.")
    ] = "drop",
    path_parts: Annotated[
        Literal["hash", "keep"],
        flag("HOW: hash or keep what looks like e-mail addresses, tokens, numbers."),
    ] = "hash",
    bodies: Annotated[
        Literal["drop", "keep"],
        flag("HOW: drop or keep a HAR's requests with bodies, personal fields hidden."),
    ] = "drop",
    flow: Annotated[
        bool, flag("HAR only: one user's login and requests in their order, tokens found.")
    ] = False,
    force: Annotated[bool, flag("Write over a file that is there.")] = False,
) -> Exit:
    """Make a load of the traffic in an access log or HAR file.

    It prints how well load and log agree. Addresses and agents are hashed with a salt that is
    thrown away; nothing else of visitors is kept.

    For example

        webdyno traffic access.log access.log.1.gz -o traffic.toml

        webdyno compare conf:new.conf conf:old.conf --root public --traffic traffic.toml

        webdyno traffic access.log --twin copy

        webdyno compare nginx node --catalog copy --site twin --traffic traffic.toml

        webdyno traffic login.har --flow -o shop.toml

        webdyno traffic a.log --from 2026-11-22T18:00 --to 2026-11-22T19:00+01:00 --speed 10
    """
    from webdyno.core.files import replacing, write_whole, writing
    from webdyno.media.console import notify
    from webdyno.traffic import Manner, traffic_of
    from webdyno.traffic.log import LogSelection
    from webdyno.traffic.privacy import Privacy
    from webdyno.traffic.read import check_is_file, read_logs
    from webdyno.traffic.twin import NAME, write_twin

    for log in logs:
        if str(log).startswith("-") and str(log) != "-":
            raise UserError(f"traffic has no flag {log}; `webdyno traffic --help` has them all")
        check_is_file(log)
    for written in filter(None, (output, replay)):
        if written.exists() and not force:
            raise UserError(f"{written} is there already; --force writes over it")
        if written.is_symlink() or (written.exists() and not written.is_file()):
            raise UserError(f"{written} is a link or no regular file; name the file itself")
    if flow:
        ignored = {
            "--twin": twin is not None,
            "--replay": replay is not None,
            "--loop": loop != "open",
            "--speed": speed != 1.0,
            "--from": from_ is not None,
            "--to": to is not None,
            "--methods": methods != "GET,HEAD",
            "--queries": queries != "drop",
            "--path-parts": path_parts != "hash",
            "--bodies": bodies != "drop",
        }
        if flag := next((flag for flag, is_given in ignored.items() if is_given), None):
            raise UserError(
                f"{flag}: has no effect with --flow, which keeps one user's requests as they are, "
                "with variables in the place of what is personal; leave one of them out"
            )
        return _flow(logs, output)
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
    with _reading_progress() as progress:
        read = read_logs(
            logs, wanted, Privacy(queries, path_parts, keeps_bodies=bodies == "keep"), progress
        )
    named = None if replay is None else os.path.relpath(replay, output.parent)
    made = traffic_of(read, Manner(loop, speed), twin=twin_of if twin else None, replay_file=named)
    write_whole(output, made.text, mode=PRIVATE if bodies == "keep" else SHARED)
    if replay is not None and made.replay is not None:
        with writing(replay), replacing(replay) as new, new.open("x", encoding="utf-8") as file:
            file.writelines(made.replay.written())
    served: list[str] = []
    if twin is not None and made.twin is not None:
        write_twin(twin, made.twin)
        served = ["--catalog", str(twin), "--site", NAME]
    for bad in read.bad:
        notify(f"{bad.file}:{bad.line}: {bad.why}")
    _print_log(made.workload)
    for note in read.notes:
        notify(f"note: {note}")
    if loop == "open":
        _note_few(made.workload.arrivals.rate_per_s, speed)
    compare = command("compare", "A", "B", *served, "--traffic", str(output))
    notify(f"{output} has the load: {compare}")
    if made.workload.pages:
        notify(
            "stacks with PHP or Node.js serve this twin; --twin-of files makes one for all of them"
        )
    if replay is not None:
        both = "--vary load.arrivals=poisson,replay"
        notify(f"{replay} has the log's own timetable; to measure with both: {compare} {both}")
    return Exit.OK


def _flow(recordings: Sequence[Path], output: Path) -> Exit:
    """Write what one user did in a browser as a login and a flow."""
    import tomli_w

    from webdyno.config.recording import read_recording
    from webdyno.core.files import write_whole
    from webdyno.core.format import count
    from webdyno.media.console import notify

    if len(recordings) != 1 or recordings[0].suffix != ".har":
        raise UserError("--flow: takes one HAR file, which a browser saves with its responses")
    recording = read_recording(recordings[0])
    login = {"login": recording.login} if recording.login else {}
    values = {"values": recording.values} if recording.values else {}
    text = tomli_w.dumps({**values, **login, "requests": recording.requests})
    write_whole(output, text, mode=PRIVATE)
    for note in recording.notes:
        notify(note)
    notify(
        f"{output} has {count(len(recording.login), 'login step')} and "
        f"{count(len(recording.requests), 'request')} of a flow; look it over, then "
        f"{command('compare', 'A', 'B', '--traffic', str(output))}"
    )
    return Exit.OK


def _methods(given: str) -> list[str]:
    names = given.upper().split(",")
    for name in names:
        if not re.fullmatch("[A-Z]{1,20}", name) or name in {"CONNECT", "TRACE"}:
            raise UserError(f"--methods {given}: {name!r:.40} is no method that asks for a page")
    return names


def _moment(flag: str, given: str | None, unless: float) -> float:
    from webdyno.traffic.access import moment_of

    try:
        return moment_of(given) if given else unless
    except (ValueError, OverflowError):
        raise UserError(
            f"{flag} {given}: is no time such as 2026-11-22T18:00 or 2026-11-22T18:00+01:00"
        ) from None


@contextmanager
def _reading_progress() -> Iterator[Callable[[str, int, int], None]]:
    from webdyno.core.format import count, number
    from webdyno.media.console import plain_console

    with plain_console(stderr=True).status("reading") as status:
        yield lambda name, line, requests: status.update(
            f"{name}: line {number(line)}, {count(requests, 'request')}"
        )


def _note_few(rate_rps: float, speed: float) -> None:
    """Report how a run gets enough requests where the load has too few."""
    from webdyno.core.format import significant
    from webdyno.media.console import notify

    if 0 < rate_rps * speed < FEW_RPS and (enough := ENOUGH_RPS / rate_rps) <= FASTEST:
        notify(
            f"note: the load asks for {significant(rate_rps * speed)} requests a second, too "
            f"few for a run of minutes. --speed {enough:.0f} asks for {ENOUGH_RPS:.0f}"
        )


def _print_log(log: "Workload") -> None:
    """Print what a log has, and how well the load agrees with it."""
    from rich.table import Table

    from webdyno.media.console import plain_console, print_table
    from webdyno.traffic import agreement_words, facts_of

    facts = Table.grid(padding=(0, 2))
    for name, value in facts_of(log):
        facts.add_row(name, value)
    console = plain_console()
    console.print(facts)
    console.print("\nHow well the load agrees with the log")
    print_table(("", "log", "load", ""), map(agreement_words, log.fidelity), ("log", "load"))
