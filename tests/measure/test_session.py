"""Sessions of a run: what a folder must hold to go on, and what must not have changed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders import START, SimulatedRun, SimulatedVariant, simulated_run
from evidence.stretches import Truth, stretch
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.config.catalogue import BUILT_IN, content_of, files_of
from webdyno.config.reading import TomlFile
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.records import RoundRecord, SessionRecord, StopRecord
from webdyno.evidence.point_data import RunData
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import files_to_keep, kept_catalogue
from webdyno.measure.session import begin_run, is_finished, resume_run, rounds_are_over

DUEL = {
    "title": "t",
    "question": "q",
    "site": "static",
    "variants": {"nginx": {"stack": "nginx"}, "apache": {"stack": "apache-prefork-modphp"}},
}


def begun(
    path: Path, experiment: dict[str, Any] | None = None, catalogue: Catalogue | None = None
) -> RunFolder:
    """Begin a run and measure nothing."""
    known = catalogue or Catalogue.load()
    read = read_experiment(CommandLine(experiment or DUEL, {}), [], known)
    with begin_run("mine", read, known, path) as folder:
        return folder


def changed(folder: RunFolder, change: Callable[[dict[str, Any]], None]) -> None:
    """Make a run look as if it had begun under other conditions."""
    file = folder.path / "run.json"
    head = json.loads(file.read_text())
    change(head)
    file.write_text(json.dumps(head))


def test_each_start_of_measuring_is_on_record(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    resume_run(RunFolder.open(folder.path)).close()
    sessions = folder.records()
    assert [type(session) for session in sessions] == [SessionRecord, SessionRecord]
    first, second = sessions
    assert isinstance(first, SessionRecord)
    assert isinstance(second, SessionRecord)
    assert first.machine == second.machine == folder.head.machine
    assert first.versions == second.versions == folder.head.versions
    assert first.started_at < second.started_at


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (lambda head: head["versions"]["nginx"].update(nginx="1.0"), "versions.nginx.nginx: 1.0"),
        (lambda head: head["machine"].update(kernel="2.4"), "machine.kernel: 2.4 before"),
        (lambda head: head["machine"].update(cpu_model="Z80"), "machine.cpu_model: Z80 before"),
        (lambda head: head["machine"].update(identity="other"), "machine.identity: other before"),
        (lambda head: head.update(webdyno_version="0.0"), "webdyno_version: 0.0 before"),
        (lambda head: head.update(load_generator="loadgen 0"), "load_generator: loadgen 0 before"),
    ],
)
def test_nothing_is_mixed_into_a_run_from_elsewhere(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], reported: str
) -> None:
    folder = begun(tmp_path / "run")
    changed(folder, change)
    with pytest.raises(UserError) as error:
        resume_run(RunFolder.open(folder.path))
    assert reported in str(error.value)
    assert f"run {folder.path}/experiment.toml --catalog {folder.path}/catalog" in str(error.value)
    assert len(folder.records()) == 1


def test_a_new_kernel_start_may_find_a_little_more_memory(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    changed(folder, lambda head: head["machine"].update(memory_bytes=_a_little_more(head)))
    resume_run(RunFolder.open(folder.path)).close()


def _a_little_more(head: dict[str, Any]) -> int:
    return int(head["machine"]["memory_bytes"] * 1.001)


def test_a_folder_repeats_its_experiment_with_what_it_holds(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    catalogue = kept_catalogue(folder.path)
    again = read_experiment(TomlFile(folder.path / "experiment.toml"), [], catalogue)
    assert again == folder.head.experiment
    for variant in again.variants.values():
        for part in catalogue.stack(variant.stack).services.values():
            assert part.service.folder.is_relative_to(folder.path)
            for template in part.service.files.values():
                next_to = part.service.folder, part.service.folder.parent
                assert any((place / template).is_file() for place in next_to), template
    assert catalogue.site("static").folder.is_relative_to(folder.path)


def test_a_catalogue_of_ones_own_is_kept_with_all_that_varies(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(BUILT_IN / "services/nginx", own / "services/mine")
    for name in ("mine", "other"):
        shutil.copytree(BUILT_IN / "stacks/nginx", own / "stacks" / name)
        stack = own / "stacks" / name / "stack.toml"
        stack.write_text(stack.read_text().replace('service = "nginx"', 'service = "mine"'))
    shutil.copytree(BUILT_IN / "sites/static", own / "sites/letters")
    (own / "sites/letters/drafts").mkdir()
    (own / "sites/letters/drafts/letter.txt").write_text("Dear reader")
    (own / "sites/letters/root").symlink_to(own / "sites/letters/drafts")
    experiment = DUEL | {
        "site": "letters",
        "variants": {"a": {"stack": "mine"}, "b": {"stack": "nginx"}},
        "factors": {"variants.a.stack": ["mine", "other"]},
    }
    folder = begun(tmp_path / "run", experiment, Catalogue.load([own]))
    shutil.rmtree(own)
    kept = kept_catalogue(folder.path)
    assert {"mine", "other"} <= set(kept.stacks)
    assert (kept.site("letters").folder / "root/letter.txt").read_text() == "Dear reader"
    resume_run(RunFolder.open(folder.path)).close()


def test_a_run_that_was_killed_while_it_was_made_is_refused(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    (folder.path / "experiment.toml").unlink()
    with pytest.raises(UserError, match="ended before it began"):
        resume_run(RunFolder.open(folder.path))


def test_the_copy_of_a_catalogue_is_known_again(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(BUILT_IN / "services/apache", own / "services/apache")
    shutil.copytree(BUILT_IN / "services/php", own / "services/php")
    (own / "services/apache/README").write_text("mine")
    folder = begun(tmp_path / "run", catalogue=(mine := Catalogue.load([own])))
    kept = content_of(files_of(folder.path / "catalog"))
    assert kept is not None
    assert kept == content_of(files_to_keep(folder.head.experiment, mine))
    other = begun(tmp_path / "other")
    assert content_of(files_of(other.path / "catalog")) is None


VARIANTS = {"a": SimulatedVariant(), "b": SimulatedVariant()}


def finished(run: SimulatedRun) -> bool:
    return is_finished(run.whole)


def test_a_run_is_finished_where_the_stop_rule_holds_or_held() -> None:
    many = Measure(seed=1, max_rounds=8, budget_s=1000, precision=0.0001)
    assert finished(simulated_run(VARIANTS, rounds=8, measure=many))
    seven = simulated_run(VARIANTS, rounds=7, measure=many)
    assert not finished(seven)
    stop = StopRecord(round=7, stopped_at=START, reason="budget", why="")
    stopped = SimulatedRun(seven.head, [*seven.records, stop])
    assert rounds_are_over(stopped.whole)
    assert not finished(stopped)  # long looks are to follow
    looks = [stretch(Truth(), variant=variant) for variant in VARIANTS]
    assert finished(SimulatedRun(seven.head, [*stopped.records, *looks]))


def test_a_budget_is_used_up_by_the_rounds_on_record() -> None:
    run = simulated_run(
        VARIANTS, rounds=10, measure=Measure(seed=1, budget_s=1000, precision=0.0001)
    )
    used_s = sum(it.took_s for it in run.records if isinstance(it, RoundRecord))
    assert not finished(run)
    measure = run.head.experiment.measure.model_copy(update={"budget_s": used_s + 1})
    experiment = run.head.experiment.model_copy(update={"measure": measure})
    head = run.head.model_copy(update={"experiment": experiment})
    assert finished(SimulatedRun(head, run.records))


def test_a_sweep_is_finished_when_all_of_its_points_are() -> None:
    run = simulated_run(VARIANTS, rounds=8, measure=Measure(seed=1, max_rounds=8))
    factors = {"load.connections": [1, 2]}
    experiment: Experiment = run.head.experiment.model_copy(update={"factors": factors})
    head = run.head.model_copy(update={"experiment": experiment})
    there = [record.model_copy(update={"point": 1}) for record in run.records]
    assert not is_finished(RunData(head, run.records))
    assert is_finished(RunData(head, [*run.records, *there]))


def test_a_catalogue_of_any_size_that_was_kept_is_refused(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    with (folder.path / "catalog/large").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UserError, match="the most that is read"):
        kept_catalogue(folder.path)
