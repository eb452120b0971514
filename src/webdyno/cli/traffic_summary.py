"""What `webdyno traffic` prints of a log: what it found, and how well the load agrees with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.table import Table

from webdyno.model import format as text
from webdyno.model.workload import Pages, Workload
from webdyno.report.console import plain_console, print_table, tell

SLOWEST, FASTEST = 1e-6, 1e6
FEW_RPS, ENOUGH_RPS = 10.0, 100.0
"""Below the first many slots of a run have no request; the second is proposed."""


@contextmanager
def reading_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show on a terminal how far reading is."""
    with plain_console(stderr=True).status("reading") as status:
        yield lambda name, line, requests: status.update(
            f"{name}: line {text.number(line)}, {text.count(requests, 'request')}"
        )


def tell_few(rate_rps: float, speed: float) -> None:
    """Say how a run gets enough requests where the load has too few."""
    if 0 < rate_rps * speed < FEW_RPS and (enough := ENOUGH_RPS / rate_rps) <= FASTEST:
        tell(
            f"note: the load asks for {text.significant(rate_rps * speed)} requests a second, too "
            f"few for a run of minutes. --speed {enough:.0f} asks for {ENOUGH_RPS:.0f}"
        )


def print_log(log: Workload) -> None:
    """Print what a log has, and how well the load agrees with it."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(log):
        facts.add_row(name, value)
    agrees = {True: "agree", False: "differ", None: "inconclusive"}
    rows = [
        (agreement.what, _value(agreement.log), _value(agreement.load), agrees[agreement.agrees])
        for agreement in log.fidelity
    ]
    console = plain_console()
    console.print(facts)
    console.print("\nHow well the load agrees with the log")
    print_table(("", "log", "load", ""), rows, ("log", "load"))


def _value(value: float | None) -> str:
    return text.MISSING if value is None else text.significant(value)


def _facts(log: Workload) -> Iterator[tuple[str, str]]:
    popularity, sessions, arrivals = log.popularity, log.sessions, log.arrivals
    yield "requests", f"{text.number(log.requests)} in {text.duration(arrivals.span_s)}"
    yield "rate", f"{text.significant(arrivals.rate_per_s)} per second"
    yield (
        "methods",
        ", ".join(f"{name} {text.percent(share)}" for name, share in log.methods.items()),
    )
    law = (
        f"Zipf's law, exponent {popularity.zipf:.3f} ± {popularity.zipf_error:.3f}"
        if popularity.kind == "zipf"
        else "shares of their own; Zipf's law fits them worse by "
        f"{popularity.zipf_loss_nats:.2f} nats per request"
    )
    yield "paths", f"{text.number(popularity.paths)}, by {law}"
    size = log.response_bytes
    yield "responses", f"{text.size(size.mean)} on average, 9 of 10 within {text.size(size.p90)}"
    yield (
        "sessions",
        f"{text.number(sessions.sessions)} of {text.number(sessions.clients)} clients, "
        f"{text.significant(sessions.requests.mean)} requests each"
        + (f", {text.duration(sessions.pause_s.mean)} between" if sessions.pause_s else ""),
    )
    if made := log.pages:
        yield "pages", _pages(made)
    kept = log.connections
    yield (
        "connections",
        f"{text.percent(kept.kept_share)} of requests on one that was kept"
        if kept
        else "the log doesn't say whether they were kept",
    )
    yield from (("excluded", f"{text.number(value)} {why}") for why, value in log.excluded.items())
    yield "hidden", "addresses and agents hashed; users, referers, other headers dropped"
    yield from (("hidden", f"{text.number(value)} {what}") for what, value in log.hidden.items())


def _pages(made: Pages) -> str:
    return (
        f"{text.count(made.paths, 'path')}, {text.percent(made.share)} of requests, "
        f"{text.duration(made.cpu_s)} of CPU time each, "
        f"{text.significant(made.busy_cpus)} CPUs at the load's rate"
    )
