"""`webdyno report RUN RUN …`: runs of several machines, as a user gives them."""

import json
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from in_process import webdyno
from webdyno.core.errors import UserError
from webdyno.core.run import PAGE_FILE


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Runs of three machines that agree."""
    return [
        simulated_run(
            {
                "apache": SimulatedVariant(),
                "nginx <b>": SimulatedVariant(throughput_rps=80_000 + 1000 * seed),
            },
            seed=seed,
        ).stored(tmp_path / f"here-{seed}")
        for seed in range(3)
    ]


def test_machines_are_reported_together(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[1] / PAGE_FILE).write_text("")
    assert webdyno("report", *runs, "--format=html", "-o", tmp_path / "fleet.html") == 0
    said = capsys.readouterr().out
    assert "FASTER" in said
    assert "another machine" in said
    assert max(map(len, said.splitlines())) <= 100
    page = (tmp_path / "fleet.html").read_text()
    assert "nginx &lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<svg") == 2
    assert 'href="./here-1/report.html"' in page
    assert 'href="here-0' not in page


def test_the_folder_of_a_fleet_stands_for_its_finished_runs(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variants = {"apache": SimulatedVariant(), "nginx <b>": SimulatedVariant(throughput_rps=80_000)}
    simulated_run(variants, rounds=2).stored(tmp_path / "lost")
    (tmp_path / "fleet.json").write_text("{}")
    assert webdyno("report", tmp_path, "--format=json") == 0
    assert json.loads(capsys.readouterr().out)["machines"] == [run.name for run in runs]


def test_all_of_it_is_there_as_json(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert webdyno("report", *runs, "--format=json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machines"] == ["here-0", "here-1", "here-2"]
    (pair,) = found["points"][0]["comparisons"]
    assert len(pair["replicates"]) == 3


def test_a_machine_counts_once(runs: list[Path]) -> None:
    with pytest.raises(UserError, match="a run is named twice"):
        webdyno("report", runs[0], runs[0])


def test_folders_called_alike_are_named_by_their_paths(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alike = [it.rename(tmp_path / name) for it, name in zip(runs, ("a", "b", "c"), strict=True)]
    moved = []
    for it in alike:
        (folder := tmp_path / f"from-{it.name}").mkdir()
        moved.append(it.rename(folder / "run"))
    assert webdyno("report", *moved, "--format=json") == 0
    assert json.loads(capsys.readouterr().out)["machines"] == [str(it) for it in moved]


def test_other_experiments_are_refused_in_words(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = simulated_run({"apache": SimulatedVariant(), "caddy": SimulatedVariant()}).stored(
        tmp_path / "other"
    )
    assert webdyno("report", runs[0], other, "--format=html", "-o", tmp_path / "fleet.html") == 1
    assert "these are different experiments" in " ".join(capsys.readouterr().out.split())
    assert "different experiments" in (tmp_path / "fleet.html").read_text()
