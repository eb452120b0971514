"""What this machine's client can do, as `measuring` finds it against a server that does nothing.

It is kept in the user's state folder: one file per machine and testbed.
"""

import hashlib
import os
from pathlib import Path

from pydantic import ValidationError

from webdyno.model.files import write_whole, writing
from webdyno.model.machine import Calibration, Machine
from webdyno.model.testbed import TestbedSettings


def calibration_file(machine: Machine, testbed: TestbedSettings) -> Path:
    """Name the file; whatever changes what the client can do gives another one."""
    what_counts = machine.model_dump_json(
        include={"cpu_model", "cpus", "physical_cores", "memory_bytes", "kernel", "split"}
    )
    # A client at its limit is never idle.
    content = (what_counts + testbed.model_dump_json(exclude={"keep_awake"})).encode()
    return state_folder() / f"calibration-{hashlib.sha256(content).hexdigest()[:16]}.json"


def state_folder() -> Path:
    """Give the folder for what outlives a run: XDG Base Directory Specification."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local/state"
    return base / "webdyno"


def save_calibration(calibration: Calibration) -> Path:
    """Write a calibration for later runs on this machine; raise OperationError when that fails."""
    path = calibration_file(calibration.machine, calibration.testbed)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, calibration.model_dump_json(indent=2) + "\n")
    return path


def load_calibration(machine: Machine, testbed: TestbedSettings) -> Calibration | None:
    """Give the calibration of this machine and testbed; None without one that can be read."""
    try:
        text = calibration_file(machine, testbed).read_text(encoding="utf-8")
        return Calibration.model_validate_json(text)
    except (OSError, ValidationError):
        return None
