"""Reads counters of the servers and of the host at a slot's edges."""

from webdyno.probe.cpu import CpuReading, server_cpu

__all__ = ["CpuReading", "server_cpu"]
