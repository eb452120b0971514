"""How a league's figures are said, on all of its pages."""

from collections.abc import Iterator, Mapping

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.metrics import CPU_TIME
from webdyno.core.testbed import Machine
from webdyno.league.tables import MEMORY, P50, P99, Entry, Standing
from webdyno.report.words import quantity_and_interval

LIMITS = {"client": "the client", "link": "the link", "load": "its connections"}
"""What isn't a stack's own."""
LEAST_SHOWN = 0.05
"""Share of the servers' CPUs from which on a service's part is named."""


def machine_words(machine: Machine) -> str:
    """Return a machine in a few words."""
    cpus = text.count(len(machine.cpus), "CPU")
    return f"{cpus} {machine.cpu_model}, {machine.distribution}, Linux {machine.kernel}"


def split_words(machine: Machine) -> str:
    """Return which part of a machine's CPUs the servers have."""
    if machine.split.shared:
        return "servers and client share its CPUs"
    servers, client = len(machine.split.servers), len(machine.split.client)
    return f"servers on {servers} of its CPUs, client on {client}"


def machine_facts(machine: Machine) -> list[tuple[str, str]]:
    """Return what a machine is, term by term."""
    servers, client = machine.split.servers, machine.split.client
    return [
        ("CPUs", f"{len(machine.cpus)} of {machine.cpu_model}"),
        ("the servers' CPUs, by number", text.cpu_list(servers)),
        ("the client's CPUs, by number", text.cpu_list(client)),
        ("memory", text.size(machine.memory_bytes)),
        ("system", f"{machine.distribution}, Linux {machine.kernel}"),
        ("virtual machine", machine.virtualisation or "no"),
    ]


def load_words(standing: Standing) -> str:
    """Return under which load a task measures, in a sentence."""
    if standing.rate_rps is not None:
        return f"All get {standing.rate_rps:,g} requests per second; the cheapest is best."
    return (
        f"{standing.connections} connections at full speed: the next request after each response."
    )


def joined_words(standing: Standing) -> str:
    """Return how a table's figures hang together."""
    if standing.runs == 1:
        return "They come from one run."
    return (
        f"They come from {standing.runs} runs, joined by stacks that these share. What ranks are "
        "by, and CPU per request, is shown on the scale of the newest run, as if all had been "
        "measured in it; the rest is of the run that measured a stack. Compare knows whether two "
        "differ: a pair that was measured in one run is surer than whiskers show."
    )


def headings(standing: Standing, at_rate: Standing | None) -> list[str]:
    """Return the headings of `cells`."""
    if standing.rate_rps is not None:
        return ["CPUs used", "memory, MiB", "p50", "p99"]
    common = at_rate and f"{at_rate.rate_rps:,g} req/s"
    more = [f"p99 at {common}", f"CPUs at {common}"] if common else []
    return ["CPU per request", "memory, MiB", *more]


def cells(entry: Entry, standing: Standing, at_rate: Standing | None) -> Iterator[str]:
    """Yield a row's further figures in the table of a task."""
    if standing.rate_rps is not None:
        yield _cpus(entry, standing)
        yield from (figure_words(metric, entry) for metric in (MEMORY, P50, P99))
        return
    yield interval_words(CPU_TIME, entry.in_table(CPU_TIME))[0]
    yield figure_words(MEMORY, entry)
    if at_rate:
        there = at_rate.entry_of(entry.stack)
        yield figure_words(P99, there)
        yield _cpus(there, at_rate)


def own_headings(rated: bool) -> list[str]:
    """Return the headings of `own_cells`; `rated`: whether the league measured at common rates."""
    return ["CPU per request", "memory, MiB", *(["p99 at a common rate"] if rated else [])]


def own_cells(
    entry: Entry, standing: Standing, at_rate: Standing | None, rated: bool
) -> Iterator[str]:
    """Yield a row's further figures in the table of a stack."""
    yield from (figure_words(metric, entry) for metric in (CPU_TIME, MEMORY))
    if rated:
        there = at_rate.entry_of(entry.stack) if at_rate else None
        yield figure_words(P99, entry if standing.rate_rps is not None else there)


def figure_words(metric: str, entry: Entry | None) -> str:
    """Return a metric of a stack, as its own run has it; of one that was not measured a dash."""
    return interval_words(metric, entry.figures.get(metric) if entry else None)[0]


def interval_words(metric: str, interval: Interval | None) -> tuple[str, str]:
    """Return a value and the interval around it; a dash and nothing where there is none."""
    return quantity_and_interval(metric, interval) if interval else (text.MISSING, "")


def _cpus(entry: Entry | None, standing: Standing) -> str:
    """Return how many CPUs a stack keeps busy at a common rate: what it costs there."""
    cpu = entry and entry.in_table(CPU_TIME)
    if not cpu or standing.rate_rps is None:
        return text.MISSING
    return text.significant(cpu.estimate * standing.rate_rps / 1e6, 2)


def limit_words(entry: Entry) -> str:
    """Return what kept a stack from being faster."""
    if entry.limited_by in LIMITS:
        limit = LIMITS[entry.limited_by]
        return limit if entry.limited_by == "link" else f"{limit}; it can do more"
    if entry.limited_by == "rate" or entry.cpus_busy is None:
        return "the rate" if entry.limited_by else text.MISSING
    busy = text.percent(entry.cpus_busy)
    return f"CPU, {busy} busy" if entry.limited_by == "cpu" else f"waits, CPU {busy}"


def services_words(entry: Entry, titles: Mapping[str, str]) -> str:
    """Return how a stack's services share what they use of the CPUs; nothing where it is one's.

    `titles`: of services that don't go by their role.
    """
    whole = sum(entry.cpus_by_service.values())
    shares = {role: cpus / whole for role, cpus in entry.cpus_by_service.items() if whole}
    large = sorted((share, role) for role, share in shares.items() if share >= LEAST_SHOWN)
    if len(large) < 2:
        return ""
    shown = (f"{titles.get(role, role)} {text.percent(share)}" for share, role in reversed(large))
    return f"of it {', '.join(shown)}"
