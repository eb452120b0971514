"""Several machines: `webdyno cluster` starts, looks at and stops the hosts of a cluster.

Runs of one experiment on several machines are measured there, judged together and shown.
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.flags import flag
from webdyno.media.console import notify, plain_console, print_table

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.cluster.host import CheckedHost
    from webdyno.cluster.ssh import SshHost
    from webdyno.interfaces.cli.flags import RunFlags
    from webdyno.launch.dispatch import Dispatch

PORT = 6379
TOKEN_BYTES = 32
COLUMNS = ("host", "CPUs", "memory", "kernel", "to the first and back", "a connection")
FLEET_PAGE = "fleet.html"
FLEET_FORMATS = ("html", "json")
"""What several machines together are written as."""


def cluster(
    what: Annotated[
        Literal["check", "up", "down"],
        flag("WHAT: check (all hosts and links), up (start nodes), down (stop them)."),
    ],
    *hosts: Annotated[
        str,
        flag("HOST: up, down: as ssh takes them, the head first; check: HOST:PORT of the head."),
    ],
    port: Annotated[int, flag("NUMBER: up: where the head listens.")] = PORT,
    python: Annotated[
        str | None, flag("PATH: up, down: the hosts' Python that has webdyno.")
    ] = None,
) -> Exit:
    """Start, check and stop a Ray cluster of load and server hosts.

    `up` starts Ray's head on the first host and nodes on the others, by SSH, for those who have the
    token RAY_AUTH_TOKEN. `check` shows each host's CPUs, memory and kernel, round-trip time and
    single-connection bandwidth to the head. Every host has the same webdyno, in the same Python.

    For example

        webdyno cluster up user@10.0.0.1 user@10.0.0.2 user@10.0.0.3

        webdyno cluster check 10.0.0.1:6379

        webdyno cluster down user@10.0.0.1 user@10.0.0.2 user@10.0.0.3
    """
    if what == "check":
        if len(hosts) > 1:
            raise UserError("cluster check takes the head alone, such as 10.0.0.1:6379")
        return _check(hosts[0] if hosts else None)
    if not hosts:
        raise UserError(f"cluster {what} takes the hosts: user@10.0.0.1 user@10.0.0.2, head first")
    from webdyno.cluster.ssh import ssh_hosts

    named = ssh_hosts(hosts, python or sys.executable)
    return _up(named, port) if what == "up" else _down(named)


def _check(head: str | None) -> Exit:
    from webdyno.cluster.host import checked_hosts, measure_links
    from webdyno.core.format import count
    from webdyno.launch.dispatch import cluster_hosts

    with cluster_hosts(head) as hosts:
        looked = checked_hosts(hosts)
        measure_links(looked)
    fit = [host for host in looked if not host.why_not]
    console = plain_console()
    print_table(COLUMNS, map(_row, looked))
    for host in looked:
        if host.why_not:
            console.print(host.why_not, soft_wrap=True)
        for differs in host.differs:
            console.print(
                f"{differs.what} is {differs.after} on {host.host.name}, {differs.before} on the "
                "first host",
                soft_wrap=True,
            )
    console.print(f"{count(len(fit), 'host')} can measure the same experiment (--replicates)")
    return Exit.OK if len(fit) > 1 else Exit.FAILED


def _up(hosts: Sequence["SshHost"], port: int) -> Exit:
    from webdyno.cluster.ssh import addresses_of, start_cluster

    addresses = addresses_of(hosts)
    given = os.environ.get("RAY_AUTH_TOKEN")
    token = given or secrets.token_hex(TOKEN_BYTES)
    head = f"{addresses[hosts[0]]}:{port}"
    down = command("cluster", "down", *(host.name for host in hosts))
    up = 0
    try:
        for launched in start_cluster(addresses, port, token):
            role = "node" if up else "head"
            notify(f"{launched.host.name}: {role} up" if launched.answer else f"{launched.failure}")
            up += launched.answer is not None
    except KeyboardInterrupt:
        notify(f"\ninterrupted; some nodes may be up, and one on its way: {down}")
        return Exit.INTERRUPTED
    if not up:
        return Exit.FAILED
    run = ("run", "static-hello", "--replicates", str(max(up, 2)), "--cluster", head)
    plain_console().print(
        f"""
On any of these hosts:
    export RAY_AUTH_MODE=token RAY_AUTH_TOKEN={"… (as it is set here)" if given else token}
    {command("cluster", "check", head)}
    {command(*run)}
And in the end, from here:
    {down}""",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    return Exit.OK if up == len(hosts) else Exit.FAILED


def _down(hosts: Sequence["SshHost"]) -> Exit:
    from webdyno.cluster.ssh import addresses_of, stop_cluster

    code = Exit.OK
    for result in stop_cluster(addresses_of(hosts)):
        answer = result.answer
        if answer is None:
            notify(str(result.failure))
            code = Exit.FAILED
        elif answer.ended:
            by_force = f", {answer.killed} of them by SIGKILL" if answer.killed else ""
            notify(f"{result.host.name}: down; all {answer.ended} processes ended{by_force}")
        else:
            notify(f"{result.host.name}: nothing that `webdyno cluster up` started was there")
    return code


def _row(looked: "CheckedHost") -> tuple[str, ...]:
    from webdyno.core.format import number, significant, size

    machine, link = looked.machine, looked.link
    return (
        looked.host.name,
        str(len(machine.cpus)) if machine else "?",
        size(machine.memory_bytes) if machine else "?",
        machine.kernel if machine else "?",
        f"{significant(link.round_trip_us)} µs" if link else "",
        f"{number(link.rate_bits_per_s / 1e6)} Mbit/s" if link else "",
    )


def is_fleet(paths: Sequence[Path]) -> bool:
    """Whether these are several runs, or a folder that has one for each host."""
    from webdyno.launch.dispatch import FLEET_FILE

    return len(paths) > 1 or (paths[0] / FLEET_FILE).exists()


def is_spread(path: Path) -> bool:
    """Whether it is a folder that has a run for each point of an experiment."""
    from webdyno.launch.dispatch import SPREAD_FILE

    return (path / SPREAD_FILE).exists()


def report_fleet(paths: Sequence[Path], formats: Sequence[str], output: Path | None) -> Exit:
    """Judge several machines together; write the page, and print JSON instead where wanted."""
    from webdyno.cluster.dispatch import finished_runs

    if unable := [name for name in formats if name not in FLEET_FORMATS]:
        can = " and ".join(FLEET_FORMATS)
        raise UserError(f"--format {unable[0]}: several machines together are written as {can}")
    if len(formats) > 1 and output is not None:
        raise UserError(f"-o {output}: is one file; give one --format with it")
    runs: list[Path] = []
    for path in paths:
        runs += [run.path for run in finished_runs(path)] if is_fleet([path]) else [path]
    file = output or (paths[0] / FLEET_PAGE if len(paths) == 1 else Path(FLEET_PAGE))
    again = command("report", *paths, "--format", "html", "-o", file)
    page, json = (file if "html" in formats else None), "json" in formats
    return _show_fleet(
        _by_machine(runs), page, again, json=json, json_file=output if json else None
    )


def _by_machine(runs: Sequence[Path]) -> dict[str, Path]:
    """Name each machine by its run's folder; by its whole path where two are called alike."""
    names = [path.resolve().name for path in runs]
    if len(set(runs)) < len(runs):
        raise UserError("a run is named twice, and a machine counts once: name each folder once")
    alike = len(set(names)) < len(names)
    return {str(path) if alike else name: path for name, path in zip(names, runs, strict=True)}


def _show_fleet(
    runs: Mapping[str, Path],
    page: Path | None,
    again: str,
    *,
    json: bool = False,
    json_file: Path | None = None,
) -> Exit:
    """Judge runs' folders by the machine's name; print what they say, and write the page.

    `again` is the command that writes it another time. `json`: instead of that, in a file if named.
    """
    from webdyno.cluster.dispatch import judged_machines
    from webdyno.core.files import write_whole
    from webdyno.core.run import PAGE_FILE
    from webdyno.fleet import judge_fleet
    from webdyno.fleet.show import fleet_document, fleet_page
    from webdyno.interfaces.cli.result import exit_of_difference
    from webdyno.media.page import make_again
    from webdyno.media.terminal import print_document

    machines = judged_machines(runs)
    fleet = judge_fleet(machines)
    console, head = plain_console(), machines[fleet.machines[0]].head
    if json_file is not None:
        write_whole(json_file, fleet.model_dump_json(indent=2) + "\n")
    elif json:
        console.out(fleet.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, fleet_document(head, fleet))
    if page is not None:
        reports = {
            name: f"./{quote(relpath(run / PAGE_FILE, page.parent))}"
            for name, run in runs.items()
            if (run / PAGE_FILE).exists()
        }
        write_whole(page, fleet_page(head, fleet, reports, again), make_again(again))
        console.print(f"Page: {page}", highlight=False)
    return exit_of_difference(fleet.verdict)


def measure_and_show_all(dispatched: "Dispatch", how: "RunFlags") -> Exit:
    """Measure on hosts what is missing of an experiment; judge all together, and show that."""
    from webdyno.cluster.dispatch import finished_runs
    from webdyno.core.format import count
    from webdyno.core.run import PAGE_FILE
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import draw
    from webdyno.launch.dispatch import REPORTED_APART, measure_on_hosts

    folder, works = dispatched.folder, dispatched.works
    if not measure_on_hosts(dispatched, at_terminal(how)):
        return Exit.INTERRUPTED
    if how.report and max(work.hosts for work in works) <= REPORTED_APART:
        for run in (run for work in works for run in finished_runs(folder, work.part)):
            if not (run.path / PAGE_FILE).exists():
                draw(run)
    if not is_fleet([folder]):
        return show_spread(folder)
    runs = {run.path.name: run.path for run in finished_runs(folder)}
    if len(runs) < 2:
        raise OperationError(
            f"{count(len(runs), 'host')} came to an end, which says nothing of others"
        )
    page = folder / FLEET_PAGE
    again = command("report", folder, "--format", "html", "-o", page)
    return _show_fleet(runs, page if how.report else None, again)


def show_spread(folder: Path) -> Exit:
    """Judge each point that came to its end, and print it with its machine."""
    from webdyno.cluster.dispatch import finished_runs, work_at_points
    from webdyno.comparison import judge_sweep
    from webdyno.core.judgement import Verdict
    from webdyno.core.sweep import plan_points
    from webdyno.launch.dispatch import spread_in
    from webdyno.media.terminal import print_document
    from webdyno.report.run_comparison import MachinePoint, spread_document

    experiment = spread_in(folder)
    works, judged = work_at_points(experiment), []
    for work, plan in zip(works, plan_points(experiment), strict=True):
        for run in finished_runs(folder, work.part)[:1]:
            [alone] = judge_sweep(run.data()).points
            point = alone.replace(point=plan.point)
            judged.append(MachinePoint(run.path.parent.name, run.path.relative_to(folder), point))
    if not judged:
        raise OperationError(f"{folder}: no point was measured to its end")
    print_document(plain_console(), spread_document(experiment, judged, len(works)))
    if len(judged) < len(works):
        return Exit.FAILED
    verdicts = {replicate.judged.judgement.verdict for replicate in judged}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK
