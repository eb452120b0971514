"""Instructions in a gate's slots, counted by what every machine has: CPU time, in nanoseconds."""

from pathlib import Path

import pytest

from e2e.commands import QUICK, webdyno_here
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.errors import Exit, UserError
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD
from webdyno.core.metrics import INSTRUCTIONS
from webdyno.core.records import SlotRecord
from webdyno.launch.caller import LineProgress
from webdyno.measure.folder import RunFolder
from webdyno.measure.session import begin_run, measure_run, resume_run
from webdyno.probes import instructions
from webdyno.probes.instructions import Event
from webdyno.questions.gate.decide import GateQuestion

CPU_CLOCK, NOTHING_LIKE_IT = Event(1, 1), Event(1, 10_000)
"""PERF_TYPE_SOFTWARE: PERF_COUNT_SW_TASK_CLOCK; no such event."""
LIMIT = "instructions > +2%"
NGINX = {"stack": "nginx"}


def count_by(event: Event, patch: pytest.MonkeyPatch) -> None:
    """Have the kernel count something else."""
    real = instructions.open_counter
    patch.setattr(instructions, "open_counter", lambda _, thread: real(event, thread))


def test_a_gates_slots_have_them_and_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_by(CPU_CLOCK, monkeypatch)
    catalogue = Catalogue.load()
    asked = {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": {BASELINE: NGINX, BASELINE_AGAIN: NGINX, HEAD: NGINX},
        "gate": {"worse_than": {INSTRUCTIONS: 0.02}},
        "load": {"connections": 4},
        "measure": {"decide_on": INSTRUCTIONS, "slot_s": 0.1, "warmup_s": 0.0, "seed": 1},
    }
    experiment = read_experiment(CommandLine(asked, {}), [], catalogue)
    with begin_run("counted", experiment, catalogue, tmp_path / "run") as folder:
        measure_run(folder, LineProgress(folder.head, print), rounds={0: 6})
        slots = [it for it in folder.records() if isinstance(it, SlotRecord)]
        data = folder.data()
    measured = [slot for slot in slots if slot.phase == "measure"]
    assert {slot.variant for slot in measured} == {BASELINE, BASELINE_AGAIN, HEAD}
    for slot in measured:
        assert slot.uncounted == ""
        assert slot.instructions
    # Of all slots together: on a busy machine one has hardly a request. The kernel's clock goes on
    # while a hypervisor has the CPU.
    counted_s = sum(slot.instructions or 0 for slot in measured) / 1e9
    assert 0.5 < counted_s / sum(slot.servers.cpu_s for slot in measured) < 2
    (claim,) = GateQuestion.of_run(data).judge_once(data).claims
    assert claim.metric == INSTRUCTIONS
    assert claim.worse
    assert claim.baseline
    assert claim.baseline > 1_000


def test_a_limit_is_refused_before_anything_starts_where_nobody_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_by(NOTHING_LIKE_IT, monkeypatch)
    one = ("compare", "nginx", "apache-event", *QUICK)
    decides = "measure.decide_on=instructions"
    for words, place in {
        ("gate", "--base=nginx", "--head=nginx", f"--fail-if={LIMIT}"): "--fail-if",
        (*one, f"--set={decides}"): f"--set {decides}",
        (*one, f"--fail-if={LIMIT}"): f"--fail-if '{LIMIT}'",
    }.items():
        done = webdyno_here(*words, folder=tmp_path)
        assert done.returncode == Exit.USER_ERROR, done.stderr
        assert f"{place}: instructions can't be counted here: " in done.stderr
        assert "expected" not in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_that_counts_is_not_resumed_where_nobody_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue.load()
    asked = {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": {"a": NGINX, "b": NGINX},
        "measure": {"count_instructions": True, "seed": 1},
    }
    experiment = read_experiment(CommandLine(asked, {}), [], catalogue)
    with pytest.MonkeyPatch.context() as patch:
        count_by(CPU_CLOCK, patch)
        begin_run("counted", experiment, catalogue, tmp_path / "run").close()
    count_by(NOTHING_LIKE_IT, monkeypatch)
    with pytest.raises(UserError, match="instructions can't be counted here"):
        resume_run(RunFolder.open(tmp_path / "run"))
