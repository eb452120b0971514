"""Where things run: the machine's CPUs, its processes, what keeps them apart and ends them."""

from webdyno.bench.cpus import split_cpus
from webdyno.bench.machine import describe_machine
from webdyno.bench.process import ServerProcess
from webdyno.bench.this_machine import Bench

__all__ = ["Bench", "ServerProcess", "describe_machine", "split_cpus"]
