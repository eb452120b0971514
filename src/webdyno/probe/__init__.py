"""Reads counters of the servers and of the host at a slot's edges."""

from webdyno.probe.client import ClientWatch
from webdyno.probe.cpu import CpuReading, server_cpu
from webdyno.probe.profile import Profile, Profiler, SystemCalls, sampling_fault
from webdyno.probe.slot import Course, SlotProbe

__all__ = [
    "ClientWatch",
    "Course",
    "CpuReading",
    "Profile",
    "Profiler",
    "SlotProbe",
    "SystemCalls",
    "sampling_fault",
    "server_cpu",
]
