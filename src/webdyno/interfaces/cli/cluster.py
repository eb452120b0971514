"""`webdyno cluster`: the hosts of a cluster, started, looked at and stopped."""

import os
import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from webdyno.core.command import command
from webdyno.core.errors import UserError
from webdyno.core.exit_codes import Exit
from webdyno.media.console import notify, plain_console, print_table

if TYPE_CHECKING:
    from webdyno.cluster.host import CheckedHost
    from webdyno.cluster.launch import LaunchResult, SshHost

PORT = 6379
TOKEN_BYTES = 32


def cluster(
    what: Annotated[
        Literal["check", "up", "down"],
        Parameter(help="WHAT: check (all hosts and links), up (start nodes), down (stop them)."),
    ],
    *hosts: Annotated[
        str,
        Parameter(
            help="HOST: up, down: as ssh takes them, the head first; check: HOST:PORT of the head."
        ),
    ],
    port: Annotated[int, Parameter(help="NUMBER: up: where the head listens.")] = PORT,
    python: Annotated[
        str | None,
        Parameter(help="PATH: up, down: the hosts' Python that has webdyno."),
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
    from webdyno.cluster.launch import ssh_hosts

    named = ssh_hosts(hosts, python or sys.executable)
    return _up(named, port) if what == "up" else _down(named)


def _check(head: str | None) -> Exit:
    """Look at all hosts and links."""
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
    """Start a cluster; say of each host, and how to go on."""
    from webdyno.cluster.launch import addresses_of, start_cluster

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
    """Stop a cluster; say of each host what was there."""
    from webdyno.cluster.launch import addresses_of, stop_cluster

    ended = list(map(_report_end, stop_cluster(addresses_of(hosts))))
    return Exit.OK if all(ended) else Exit.FAILED


def _report_end(result: "LaunchResult") -> bool:
    """Report how a host's node ended; give whether it surely did."""
    if result.answer is None:
        notify(str(result.failure))
        return False
    by_force = f", {result.answer.killed} of them by SIGKILL" if result.answer.killed else ""
    stopped = f"down; all {result.answer.ended} processes ended{by_force}"
    nothing = "nothing that `webdyno cluster up` started was there"
    notify(f"{result.host.name}: {stopped if result.answer.ended else nothing}")
    return True


COLUMNS = ("host", "CPUs", "memory", "kernel", "to the first and back", "a connection")


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
