"""Where things run: the machine's CPUs, its processes, what keeps them apart and ends them."""

from pathlib import Path

from webdyno.host.machine import describe_machine, split_cpus
from webdyno.host.netns import NetnsBench
from webdyno.host.process import ServerProcess
from webdyno.host.this_machine import Bench
from webdyno.host.workspace import Workspace, others_running, sweep
from webdyno.model.bench import BenchSettings

__all__ = [
    "Bench",
    "NetnsBench",
    "ServerProcess",
    "Workspace",
    "describe_machine",
    "open_bench",
    "others_running",
    "split_cpus",
    "sweep",
]


def open_bench(settings: BenchSettings, engine: Path) -> Bench:
    """Make the bench that settings ask for, to be entered; `engine` is the engine's program."""
    if settings.kind == "netns":
        return NetnsBench(settings, engine)
    return Bench(settings.server_cores)
