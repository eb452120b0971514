"""Reads counters of the servers and of the host at a slot's edges."""

from webdyno.probe.cpu import CpuReading, server_cpu
from webdyno.probe.profile import Profiler
from webdyno.probe.slot import SlotProbe

__all__ = ["CpuReading", "Profiler", "SlotProbe", "server_cpu"]
