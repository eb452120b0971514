"""Runs the commands of builds, under a warden, and says why one failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.core.format import duration, last_lines
from webdyno.host.machine import allowed_cpus
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace

WITHIN_S = 3600.0
KEPT_FOR_S = 30 * 86_400
"""How long a build is kept that nobody requests."""
DONE = "built"
"""The file that says that a build is complete."""
MOST_LOG_BYTES = 64 * 2**20
SHOWN_LINES, SHOWN_BYTES = 25, 16_384


@dataclass(frozen=True)
class BuildEnd:
    """How a command of a build ended."""

    code: int | None
    """None where it had no end in time."""
    said: str

    def failure(self, name: str, command: str, log: Path) -> OperationError:
        """Make the message of a build that failed; `log` has all that it said."""
        how = f"exit code {self.code}"
        if self.code is None:
            how = f"no end within {duration(WITHIN_S)}"
        end = last_lines(self.said[-SHOWN_BYTES:], SHOWN_LINES)
        return OperationError(
            f"the build of {name} failed with {how}: {command}\nthe end of its log ({log}):\n{end}"
        )


def run_build(
    words: Sequence[str], testbed: Testbed, *, folder: Path, environment: Mapping[str, str]
) -> BuildEnd:
    """Run a command of a build on all CPUs, so that nothing of it outlives webdyno."""
    with Workspace() as workspace:
        log = workspace.path / "build.log"
        code = testbed.run(
            words,
            cwd=folder,
            env=environment,
            log=log,
            workspace=workspace,
            within_s=WITHIN_S,
            cpus=sorted(allowed_cpus()),
        )
        with log.open("rb") as file:
            return BuildEnd(code, file.read(MOST_LOG_BYTES).decode("utf-8", "replace"))
