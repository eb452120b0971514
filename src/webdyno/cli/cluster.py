"""`webdyno cluster check`: the hosts of a cluster, and what lies between them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.cli.flags import Cluster
from webdyno.cli.hosts import cluster_hosts
from webdyno.model.format import count, number, significant, size

if TYPE_CHECKING:
    from webdyno.cluster.check import CheckedHost


def cluster(
    what: Annotated[  # noqa: ARG001 (a word that says what is done; there will be others)
        Literal["check"], Parameter(help="check: look at all hosts and links.")
    ],
    head: Cluster = None,
) -> Exit:
    """Look at the hosts of a Ray cluster: what they are, and what lies between them.

    Each host's CPUs, memory and kernel, a byte's way to the first host and back, and what one
    connection carries to it in a second; then in what the machines differ. Hosts that can't measure
    beside the others are named, with the reason, and the exit code is 3 where fewer than two can.
    How a cluster is started is told in docs/cluster.md.

    For example

        webdyno cluster check 10.0.0.1:6379
    """
    from webdyno.cluster.check import looked_at, measure_links

    with cluster_hosts(head) as hosts:
        looked = looked_at(hosts)
        measure_links(looked)
    fit = [it for it in looked if not it.why_not]
    console = plain_console()
    console.print(_table(looked))
    for it in looked:
        if it.why_not:
            console.print(it.why_not, soft_wrap=True)
        for differs in it.differs:
            console.print(
                f"{differs.what} is {differs.after} on {it.host.name}, {differs.before} on the "
                "first host",
                soft_wrap=True,
            )
    console.print(f"{count(len(fit), 'host')} can measure the same experiment (--replicates)")
    return Exit.OK if len(fit) > 1 else Exit.FAILED


def _table(looked: Sequence["CheckedHost"]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("host", "CPUs", "memory", "kernel", "to the first and back", "a connection"):
        table.add_column(heading, overflow="fold")
    for it in looked:
        machine, link = it.machine, it.link
        table.add_row(
            it.host.name,
            str(len(machine.cpus)) if machine else "?",
            size(machine.memory_bytes) if machine else "?",
            machine.kernel if machine else "?",
            f"{significant(link.round_trip_us)} µs" if link else "",
            f"{number(link.rate_bits_per_s / 1e6)} Mbit/s" if link else "",
        )
    return table
