"""Sweeps as autobench's sheet, read back by the auditor's parser."""

import pytest

from audit.texts import outputs
from builders import SimulatedRun, SimulatedVariant, simulated_run
from webdyno.core.errors import UserError
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import RunData
from webdyno.report.exports import AUTOBENCH_COLUMNS, autobench_sheet

VARIANTS = {
    "apache": SimulatedVariant(throughput_rps=990),
    "nginx": SimulatedVariant(throughput_rps=1000, wrong_status=503, wrong_share=0.1),
}


def sweep(rates: list[float]) -> SimulatedRun:
    """Simulate an open loop; all points answer alike."""
    simulated = simulated_run(VARIANTS, rounds=6, slot_sd=0.01)
    experiment = simulated.head.experiment
    load = experiment.load.model_copy(update={"loop": "open", "rate_per_s": rates[0]})
    factors = {"load.rate_per_s": rates, "load.timeout_s": [5.0]}
    changed = experiment.model_copy(update={"load": load, "factors": factors})
    records = [
        record.model_copy(update={"point": point})
        for point in range(len(rates))
        for record in simulated.records
    ]
    return SimulatedRun(simulated.head.model_copy(update={"experiment": changed}), records)


def test_the_auditor_reads_back_what_was_measured() -> None:
    run = sweep([1000.0, 500.0])
    rows = outputs(autobench_sheet(run.whole))
    assert [(row.demanded_rps, row.host) for row in rows] == [
        (rate, host) for rate in (500, 1000) for host in ("apache-5.0", "nginx-5.0")
    ]
    slots = [
        each.load
        for each in run.records
        if isinstance(each, SlotRecord)
        and (each.point, each.variant, each.phase) == (0, "nginx", "measure")
    ]
    found = rows[-1]
    measured_s = sum(load.measured_s for load in slots)
    assert found.tool == "autobench"
    assert found.throughput_rps == pytest.approx(
        sum(load.requests.sent or 0 for load in slots) / measured_s, abs=0.05
    )
    assert found.errors_percent == pytest.approx(10, abs=0.2)
    assert found.mean_ms == pytest.approx(1.56, rel=0.1)
    assert found.transfer_kib_s == pytest.approx(1000 * 251 / 1024, rel=0.05)


def test_columns_are_autobenchs() -> None:
    run = sweep([100.0])
    header, row = autobench_sheet(run.whole).splitlines()
    names = header.split(",")
    assert names[:10] == ["dem_req_rate", *(f"{name}_apache-5.0" for name in AUTOBENCH_COLUMNS)]
    assert len(names) == len(row.split(",")) == 19
    least, mean, most = (float(row.split(",")[n]) for n in (3, 4, 5))
    assert least < mean < most


def test_what_was_not_reported_is_an_empty_cell() -> None:
    run = sweep([100.0])
    records = [
        record.model_copy(
            update={
                "load": record.load.model_copy(
                    update={"bytes": record.load.bytes.model_copy(update={"head": None})}
                )
            }
        )
        if isinstance(record, SlotRecord)
        else record
        for record in run.records
    ]
    _, row = autobench_sheet(RunData(run.head, records)).splitlines()
    assert row.split(",")[8] == ""


def test_a_closed_loop_has_no_such_sheet() -> None:
    run = simulated_run(VARIANTS)
    with pytest.raises(UserError, match="closed loop"):
        autobench_sheet(run.whole)
