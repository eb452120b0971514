"""Whether what was asked of the CPUs' counters was counted."""

from webdyno.core.metrics import Kind
from webdyno.validity.rule import INTERFERENCE_TOLERATED, SlotRule

EXECUTED: tuple[Kind, ...] = ("instructions",)
UNCOUNTED = SlotRule(
    name="instructions-uncounted",
    broken=lambda slot: bool(slot.uncounted),
    what=lambda slots: f"its instructions weren't counted: {slots[0].uncounted}",
    fix="Stop other programs that count, such as perf; kernel.nmi_watchdog=0 frees a counter.",
    invalidates=EXECUTED,
    tolerated=INTERFERENCE_TOLERATED,
)
