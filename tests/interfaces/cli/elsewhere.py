"""A project whose file, mine.toml, would load another machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from webdyno.config import Catalogue, Draft
from webdyno.config.reading import TomlFile
from webdyno.core.experiment import Experiment
from webdyno.launch.arrangement import checked_with_own
from webdyno.launch.caller import Caller
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating


def project(folder: Path, files: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the project's files; what webdyno keeps stays in its folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def resolved(folder: Path, caller: Caller) -> tuple[Experiment, Catalogue]:
    """Read mine.toml and make its systems parts of a catalogue."""
    draft = Draft.of(TomlFile(folder / "mine.toml"), [])
    return checked_with_own(draft, Catalogue.load(), folder, caller)


def kept_run(folder: Path, caller: Caller) -> None:
    """Leave a run of mine.toml in `run`, which began where that was allowed."""
    experiment, catalogue = resolved(folder, caller)
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    RunFolder.create(folder / "run", head.model_copy(update={"experiment": experiment})).close()
    keep_for_repeating(folder / "run", experiment, catalogue)
