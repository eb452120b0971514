"""Finding and building the programs that are measured."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from rig.process import BenchError

MANIFEST = Path(__file__).parents[2] / "loadgen/Cargo.toml"
PROFILE = "BENCH_CARGO_PROFILE"
"""The environment may name another profile than release: the tests' one, which is built already."""
OWN = {
    "loadgen": "--bin",
    "floor": "--example",
    "delay_server": "--example",
    "dialled_server": "--example",
}


def build(*names: str) -> dict[str, Path]:
    """Build programs of our own with cargo, optimised, and give the path of each."""
    targets = [part for name in names for part in (OWN[name], name)]
    profile = os.environ.get(PROFILE, "release")
    command = ["cargo", "build", "--profile", profile, "--locked", "--manifest-path", str(MANIFEST)]
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


def provide(names: Iterable[str]) -> dict[str, Path]:
    """Build those of our own and find the peers on the PATH; what is missing there is excluded."""
    wanted = list(dict.fromkeys(names))
    own = [name for name in wanted if name in OWN]
    found = {name: path for name in wanted if name not in OWN and (path := shutil.which(name))}
    return (build(*own) if own else {}) | {name: Path(path) for name, path in found.items()}
