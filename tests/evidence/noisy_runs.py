"""18 runs on a noisy machine, as recorded: slots of servers whose true ratio is known, or isn't.

2 CPUs, one of them the servers'; 28 November 2026. `quiet-host-steal`: nobody else on the machine,
whose host took up to 16% now and then. `r-…`: a load of 10 to 15, 300 and 315 µs a request against
300 µs. `n-…`: nginx against Apache (event), about 2.8 on the quiet machine.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path

from builders import START, SimulatedVariant, load_result, preflight_record, run_head, server_use
from validity.broken import quiet_readings
from webdyno.core.readings import CpuUse, Readings
from webdyno.core.records import Record, RoundRecord, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.others import TICKS_S

Row = dict[str, str]


@cache
def noisy_runs() -> dict[str, tuple[PointData, float | None]]:
    """By name: what is on record, and the true ratio to the baseline."""
    runs: dict[str, list[Row]] = defaultdict(list)
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            runs[row["run"]].append(row)
    return {name: (_data(rows), _truth(rows)) for name, rows in runs.items()}


def _truth(rows: Sequence[Row]) -> float | None:
    return float(rows[0]["truth"]) if rows[0]["truth"] else None


def _data(rows: Sequence[Row]) -> PointData:
    names = sorted({row["variant"] for row in rows})
    variants = {name: SimulatedVariant() for name in names}
    head = run_head(dict.fromkeys(names, "nginx"))
    return PointData.of(head, [preflight_record(variants), *_records(rows)])


def _records(rows: Sequence[Row]) -> Iterator[Record]:
    for number in sorted({int(row["round"]) for row in rows}):
        mine = [row for row in rows if int(row["round"]) == number]
        yield from map(_slot, mine)
        yield RoundRecord(
            round=number,
            order=[row["variant"] for row in mine],
            started_at=START,
            took_s=sum(float(row["wall_s"]) for row in mine) + 1.0,
            ready_s={},
        )


def _slot(row: Row) -> SlotRecord:
    throughput_rps = float(row["throughput_rps"])
    variant = SimulatedVariant(throughput_rps=throughput_rps)
    load = load_result(variant, duration_s=float(row["window_s"]), slowness=1.0)
    requests = load.requests.replace(completed=int(row["completed"]), drained=0, unanswered=0)
    slot = SlotRecord(
        round=int(row["round"]),
        slot=int(row["slot"]),
        variant=row["variant"],
        phase="measure",
        started_at=START + timedelta(seconds=int(row["slot"])),
        load=load.replace(requests=requests),
        servers=server_use(float(row["server_cpu_s"])),
    )
    return slot.replace(readings=_readings(row, slot))


def _readings(row: Row, slot: SlotRecord) -> Readings:
    wall_s, own_s = float(row["wall_s"]), slot.servers.cpu_s
    others_s = float(row["others_share_servers"]) * wall_s + TICKS_S  # which that is less by
    steal_s = float(row["steal_share_servers"]) * wall_s
    idle_s = max(wall_s - own_s - others_s - steal_s, 0.0)
    servers = CpuUse(
        user_s=own_s + others_s, system_s=0.0, interrupts_s=0.0, idle_s=idle_s, steal_s=steal_s
    )
    client_s = float(row["steal_share_client"]) * wall_s
    client = CpuUse(
        user_s=wall_s - client_s, system_s=0.0, interrupts_s=0.0, idle_s=0.0, steal_s=client_s
    )
    quiet = quiet_readings(slot)
    host = quiet.host.replace(took_s=wall_s, servers=servers, client=client)
    return quiet.replace(host=host, client_waiting=float(row["client_waiting"]))
