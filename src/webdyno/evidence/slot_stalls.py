"""Stalls within slots: windows without responses, and whether only the servers explain them."""

from itertools import pairwise
from math import inf
from statistics import median

from webdyno.core.load_result import Window
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.stalls import EXCUSING_SHARE

STALL_SHARE, FEWEST_EXPECTED = 0.1, 20
"""A stalled window has less than this share of the responses that the rest of the slot lets expect,
where these are as many."""
FEWEST_WINDOWS = 3
"""Of a slot, whose median is the usual throughput."""
STALL_RESPONSE_TIMES = 5
"""Latencies that a stalled window must last: responses may come in bursts that far apart."""


def stalled_s(slot: SlotRecord) -> float:
    """Return the length of the slot's windows in which next to nothing was answered."""
    return sum(window.length_s for window in slot.load.counted_windows if _is_stalled(window, slot))


def _is_stalled(window: Window, slot: SlotRecord) -> bool:
    usual_us = slot.load.latency_us.p50
    if not usual_us or window.length_s < STALL_RESPONSE_TIMES * usual_us / 1e6:
        return False
    others = [other for other in slot.load.counted_windows if other is not window]
    others_s = sum(other.length_s for other in others)
    if not others_s:
        return False
    expected = sum(other.completed for other in others) / others_s * window.length_s
    return expected >= FEWEST_EXPECTED and window.completed < STALL_SHARE * expected


def own_stall_s(slot: SlotRecord) -> float:
    """Return the length of the slot's windows without responses that only the servers explain.

    0 where its readings show another cause for half of it: the load generator stalled, the
    hypervisor or other programs had the servers' CPUs, or a signal stopped them.
    """
    quiet_s = stalled_s(slot)
    return quiet_s if _elsewhere_s(slot) < EXCUSING_SHARE * quiet_s else 0.0


def holds_stall(slot: SlotRecord, stall_s: float) -> bool:
    """Whether a slot lacks half of what such a stall takes: it may lie in two windows."""
    if own_stall_s(slot) > 0:
        return True
    windows = slot.load.counted_windows
    if len(windows) < FEWEST_WINDOWS:
        return False
    usual = median(window.completed / window.length_s for window in windows)
    lacks_s = [window.length_s - window.completed / usual for window in windows] if usual else [0.0]
    most_s = max(sum(pair) for pair in pairwise([*lacks_s, 0.0]))
    return most_s >= stall_s / 2 and _elsewhere_s(slot) < EXCUSING_SHARE * most_s


def _elsewhere_s(slot: SlotRecord) -> float:
    """Return the longest time for which one other cause can have stopped the responses."""
    if slot.readings is None:
        return client_still_s(slot)
    host, servers = slot.readings.host, slot.readings.host.servers
    cpus = servers.total_s / host.took_s if host.took_s else 0.0
    stopped_s = slot.readings.stopped.servers_s if slot.readings.stopped else 0.0
    causes_s = [client_still_s(slot), stopped_s]
    if cpus:
        others_s = (servers.busy_s - slot.servers.cpu_s) / cpus
        causes_s += [servers.steal_s / cpus, min(others_s, _waited_for_cpu_s(slot.readings))]
    return max(causes_s)


def _waited_for_cpu_s(readings: Readings) -> float:
    """Return for how long servers wanted a CPU: those that sleep don't mind who has theirs."""
    waited = [service.waited_for_cpu_s for service in readings.services.values()]
    known = [share for share in waited if share is not None]
    return sum(known) if known and len(known) == len(waited) else inf


def client_still_s(slot: SlotRecord) -> float:
    """Return for how long the client stalled: by its own clock, and by what the probes saw."""
    seen_s = slot.readings.stopped.client_s if slot.readings and slot.readings.stopped else 0.0
    return max(seen_s, slot.load.client.stalled_s)
