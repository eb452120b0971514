"""What was read on several hosts in a slot, put together."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from webdyno.model.readings import CpuUse, Readings, StoppedUse
from webdyno.model.records import ServerUse
from webdyno.probe import Profile
from webdyno.run.backend import ClientUse, SlotUsage


def joined_servers(used: Sequence[SlotUsage]) -> SlotUsage:
    """Put together what the hosts of one arm's services used; the front's comes last.

    CPU time adds up. Of what only makes sense for one machine (network, samples, pressure) the
    front's is told.
    """
    front = used[-1].readings
    readings = [it.readings for it in used]
    cpus = _added([it.host.servers for it in readings])
    stopped = [it.stopped.servers_s for it in readings if it.stopped]
    return SlotUsage(
        servers=ServerUse(
            cpu_user_s=sum(it.servers.cpu_user_s for it in used),
            cpu_sys_s=sum(it.servers.cpu_sys_s for it in used),
            interrupts_s=sum(it.servers.interrupts_s for it in used),
            means=used[-1].servers.means,
        ),
        readings=front.replace(
            services={role: it for each in readings for role, it in each.services.items()},
            status={role: it for each in readings for role, it in each.status.items()},
            other_arms_cpu_s=_by_arm(readings),
            host=front.host.replace(servers=cpus),
            stopped=StoppedUse(servers_s=max(stopped, default=0.0)),
        ),
        profile=_profiles([it.profile for it in used if it.profile]),
        system_calls=_calls([it.system_calls for it in used if it.system_calls]),
        course=used[-1].course,
        server_cpus=used[-1].server_cpus,
    )


def joined_uses(uses: Sequence[ClientUse]) -> ClientUse | None:
    """Put together what was read of hosts that make load: each is watched for its own limits."""
    if not uses:
        return None
    return ClientUse(
        cpu=_added([use.cpu for use in uses]),
        waiting=_most(use.waiting for use in uses),
        stopped_s=max(use.stopped_s for use in uses),
        silent_s=_most(use.silent_s for use in uses),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _added(parts: Sequence[CpuUse]) -> CpuUse:
    def total(of: Callable[[CpuUse], float]) -> float:
        return sum(map(of, parts))

    return CpuUse(
        user_s=total(lambda it: it.user_s),
        system_s=total(lambda it: it.system_s),
        interrupts_s=total(lambda it: it.interrupts_s),
        idle_s=total(lambda it: it.idle_s),
        steal_s=total(lambda it: it.steal_s),
    )


def _by_arm(readings: Iterable[Readings]) -> dict[str, float]:
    found = Counter[str]()
    for each in readings:
        found.update(each.other_arms_cpu_s)
    return dict(found)


def _profiles(profiles: Sequence[Profile]) -> Profile | None:
    if not profiles:
        return None
    cpu_s, stacks = Counter[str](), Counter[str]()
    for profile in profiles:
        cpu_s.update(profile.cpu_s)
        stacks.update(profile.stacks)
    return Profile(dict(cpu_s), stacks)


def _calls(counts: Sequence[dict[str, int]]) -> dict[str, int] | None:
    if not counts:
        return None
    found = Counter[str]()
    for each in counts:
        found.update(each)
    return dict(found)
