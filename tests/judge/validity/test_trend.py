"""The rule about servers that haven't settled."""

import pytest

from judge.validity.broken import found_in, run_with
from webdyno.model.records import SlotRecord


@pytest.mark.parametrize(
    ("change_per_slot", "severity"), [(0.0, None), (0.008, "note"), (-0.03, "invalid")]
)
def test_a_trend_over_the_block_is_told(change_per_slot: float, severity: str | None) -> None:
    def drift(slot: SlotRecord) -> SlotRecord:
        requests = slot.load.requests
        completed = round(20_000 * (1 + change_per_slot * slot.slot + 0.001 * (slot.block % 3)))
        load = slot.load.model_copy(
            update={"requests": requests.model_copy(update={"completed": completed})}
        )
        return slot.model_copy(update={"load": load})

    finding = found_in(run_with(drift)).get("trend")
    assert (finding.severity if finding else None) == severity
    if finding:
        assert finding.arm == "apache"
        assert ("rises" if change_per_slot > 0 else "falls") in finding.what


def test_noise_is_no_trend() -> None:
    assert "trend" not in found_in(run_with(lambda slot: slot))
