"""Where the load engine's program is, and its version: all that many need to know of it."""

import os
import shutil
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.host.children import must, run_program


def find_loadgen() -> Path:
    """Find the engine: $WEBDYNO_LOADGEN, this checkout's build, the wheel's, then the PATH."""
    if named := os.environ.get("WEBDYNO_LOADGEN"):
        if os.access(named, os.X_OK):
            return Path(named)
        raise UserError(
            f"WEBDYNO_LOADGEN names {named}, which is not a program; correct or unset it"
        )
    package = Path(__file__).parents[1]
    for built in (package.parents[1] / "loadgen/target/release/loadgen", package / "bin/loadgen"):
        if built.exists():
            return built
    if path := shutil.which("loadgen"):
        return Path(path)
    raise UserError(
        "the load engine is not built; in a checkout './dyno doctor' builds it, "
        "else set WEBDYNO_LOADGEN to the program"
    )


def loadgen_version() -> str:
    """Return the engine's name and version, as recorded with a run."""
    program = find_loadgen()
    return must(run_program([program, "--version"], within_s=10), f"{program} doesn't work")
