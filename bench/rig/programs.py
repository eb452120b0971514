"""Finding and building the programs that are measured."""

import json
import shutil
import subprocess
from pathlib import Path

from rig.process import BenchError

MANIFEST = Path(__file__).parents[2] / "loadgen/Cargo.toml"
OWN = {"loadgen": "--bin", "floor": "--example", "delay_server": "--example"}


def build(*names: str) -> dict[str, Path]:
    """Build programs of our own with cargo, optimised, and give the path of each."""
    targets = [part for name in names for part in (OWN[name], name)]
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", str(MANIFEST)]
    try:
        built = subprocess.run(
            [*command, *targets, "--message-format", "json-render-diagnostics"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise BenchError("cargo was not found; install Rust from https://rustup.rs") from None
    except subprocess.CalledProcessError:
        raise BenchError("building failed; cargo says above why") from None
    messages = (json.loads(line) for line in built.stdout.splitlines())
    return {
        message["target"]["name"]: Path(message["executable"])
        for message in messages
        if message.get("executable")
    }


def find(name: str) -> Path | None:
    """Find a peer on the PATH."""
    found = shutil.which(name)
    return Path(found) if found else None
