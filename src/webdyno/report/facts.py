"""How a run was measured and on which machine, as terms with what is to be said of them."""

from datetime import datetime

from webdyno.judge.validity.servers import counted_by_front
from webdyno.model.experiment import Experiment, Measure
from webdyno.model.machine import CpuSplit, Machine
from webdyno.model.records import BlockRecord, Record, SlotRecord
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.settings import arm_words, load_words

Facts = list[tuple[str, str]]


def measured_slots(records: list[Record]) -> list[SlotRecord]:
    """Give the slots that are no warm-up."""
    return [slot for slot in records if isinstance(slot, SlotRecord) and slot.phase == "measure"]


def finished_blocks(records: list[Record]) -> list[BlockRecord]:
    """Give the blocks that came to their end."""
    return [record for record in records if isinstance(record, BlockRecord)]


def how_measured(head: RunHead, records: list[Record], blocks: int) -> Facts:
    """Tell how the run was made, so that a reader can judge it; `blocks` are those that counted."""
    measure = head.experiment.measure
    facts = [
        ("Blocks", _blocks(blocks, records, measure)),
        ("Paths", _paths(head.experiment)),
        ("Load", load_words(head.experiment.load)),
        *((("Arms", "; ".join(arms)),) if (arms := arm_words(head.experiment)) else ()),
        ("CPUs", cpu_split(head.machine.split)),
        ("Stop rule", _stop_rule(measure)),
        ("Seed", str(measure.seed)),
        ("Load generator", head.load_generator),
    ]
    slots = measured_slots(records)
    if slots:
        valid = sum(slot.load.requests.completed for slot in slots)
        busiest = max(slot.load.client.busy for slot in slots)
        facts += [
            ("Valid answers", text.number(valid)),
            ("Busiest client thread", f"{text.percent(busiest)} of its time"),
            *_own_counts(slots),
            ("Server CPU read from", ", ".join(sorted({slot.servers.means for slot in slots}))),
        ]
    return facts


def _own_counts(slots: list[SlotRecord]) -> Facts:
    """Set what servers counted beside what was sent to them; nothing where none of them counts."""
    counts = {slot.arm: [0, 0] for slot in slots if counted_by_front(slot) is not None}
    for slot in slots:
        if (counted := counted_by_front(slot)) is not None:
            counts[slot.arm][0] += counted
            counts[slot.arm][1] += slot.load.requests.sent or 0
    told = [
        f"{arm} counted {text.number(counted)} of {text.count(sent, 'request')} sent"
        for arm, (counted, sent) in counts.items()
        if sent
    ]
    return [("Servers' own counts", "; ".join(told))] if told else []


def _blocks(counted: int, records: list[Record], measure: Measure) -> str:
    had = {len(block.order) // len(set(block.order)) for block in finished_blocks(records)}
    slots = " or ".join(map(str, sorted(had or {measure.first_slots_per_arm})))
    chosen = " (chosen from the noise seen)" if len(had) > 1 else ""
    return (
        f"{text.count(counted, 'block')} counted, each a fresh start of every arm; in each, "
        f"{slots} slots{chosen} of {text.duration(measure.slot_s)} per arm in balanced "
        f"random order, after {text.duration(measure.warmup_s)} of warm-up"
    )


def _paths(experiment: Experiment) -> str:
    shared = ", ".join(experiment.load.paths)
    own = {name: ", ".join(arm.paths) for name, arm in experiment.arms.items() if arm.paths}
    if len(own) < len(experiment.arms):
        own = {"": shared} | own
    return "; ".join(f"{name}: {paths}" if name else paths for name, paths in own.items())


def _stop_rule(measure: Measure) -> str:
    return (
        f"interval within ±{text.percent(measure.precision)}, or "
        f"{text.count(measure.max_blocks, 'block')}, or {text.duration(measure.budget_s)}; "
        f"never before {text.count(measure.min_blocks, 'block')}"
    )


def cpu_split(split: CpuSplit) -> str:
    """Tell which CPUs do what."""
    words = f"servers on {text.cpu_list(split.servers)}, client on {text.cpu_list(split.client)}"
    if not set(split.rest) <= {*split.servers, *split.client}:
        words += f", {text.cpu_list(split.rest)} left to the rest of the machine"
    return words + (" (shared: results are only indicative)" if split.shared else "")


def machine_facts(machine: Machine) -> Facts:
    """Describe the machine; what isn't known is left out."""
    backlog = machine.listen_backlog_limit
    known = [
        ("CPU", machine.cpu_model),
        ("CPUs usable", f"{len(machine.cpus)} ({text.cpu_list(machine.cpus)})"),
        ("Physical cores", machine.physical_cores),
        ("Memory", text.size(machine.memory_bytes)),
        ("Kernel", machine.kernel),
        ("Distribution", machine.distribution),
        ("Virtualisation", machine.virtualisation),
        ("CPU governor", machine.governor),
        ("Open files, at most", text.number(machine.open_files_limit)),
        ("Listen backlog, at most", None if backlog is None else text.number(backlog)),
        ("Network between client and servers", machine.network),
    ]
    return [(term, str(value)) for term, value in known if value is not None]


def when(moment: datetime) -> str:
    """Give a date and time with its zone."""
    return f"{moment:%-d %B %Y, %H:%M} {moment.tzname() or ''}".strip()
