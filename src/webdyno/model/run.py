"""The head of a run's folder: what was run, by what, where; written before any measurement."""

from datetime import datetime
from typing import Literal

import tomli_w

from webdyno.model.base import Model
from webdyno.model.calibration import Calibration
from webdyno.model.experiment import Experiment
from webdyno.model.machine import Machine

FORMAT: Literal[2] = 2
READABLE = (1, FORMAT)
"""Format 1 has no sessions, no stops and no copy of the catalogue."""

EXPERIMENT_FILE = "experiment.toml"
PAGE_FILE = "report.html"
CATALOGUE_FOLDER = "catalog"
"""What a run's folder holds so that the run can be repeated elsewhere."""


class RunHead(Model):
    """`run.json` of a run's folder."""

    format: Literal[1, 2] = FORMAT
    webdyno_version: str
    experiment_name: str
    experiment: Experiment
    """Resolved: defaults and --set applied, seed drawn."""
    started_at: datetime
    machine: Machine
    versions: dict[str, dict[str, str]]
    """By arm, by service: what the server says its version is."""
    load_generator: str
    calibration: Calibration | None = None
    """What the client could do on this machine and bench; None when it was never measured."""

    def experiment_toml(self) -> str:
        """Give the resolved experiment as a file that `webdyno run` takes."""
        return tomli_w.dumps(self.experiment.model_dump(mode="json", exclude_none=True))
