"""Finding and building the programs that are measured."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rig.process import BenchError

MANIFEST = Path(__file__).parents[2] / "loadgen/Cargo.toml"
EARLIER = MANIFEST.parent / "target/earlier"
"""Where builds of earlier revisions are kept, by their commits."""
PROFILE = "BENCH_CARGO_PROFILE"
"""The environment may name another profile than release: the tests' one, which is built already."""
OWN = {
    "loadgen": "--bin",
    "floor": "--example",
    "floor_grpc": "--example",
    "echo_server": "--example",
    "delay_server": "--example",
    "quic_delay_server": "--example",
    "quic_floor": "--example",
    "dialed_server": "--example",
}


def build(*names: str) -> dict[str, Path]:
    """Build programs of our own with cargo, optimised, and give the path of each."""
    targets = [part for name in names for part in (OWN[name], name)]
    return _build(targets, MANIFEST)


def _build(targets: Sequence[str], manifest: Path, folder: Path | None = None) -> dict[str, Path]:
    profile = os.environ.get(PROFILE, "release")
    command = ["cargo", "build", "--profile", profile, "--locked", "--manifest-path", str(manifest)]
    if folder is not None:
        command += ["--target-dir", str(folder)]
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


def build_at(revision: str) -> Path:
    """Build loadgen as it was at a revision, once, and give its path."""
    commit = _git("rev-parse", "--short=12", f"{revision}^{{commit}}").decode().strip()
    kept = EARLIER / commit
    if not kept.exists():
        with TemporaryDirectory(prefix="bench-earlier-") as folder:
            files = _git("archive", commit, "loadgen")
            subprocess.run(["tar", "--extract"], input=files, cwd=folder, check=True)
            built = _build(["--bin", "loadgen"], Path(folder) / "loadgen/Cargo.toml", EARLIER)
            shutil.copy(built["loadgen"], kept)
    return kept


def _git(*words: str) -> bytes:
    command = ["git", "-C", str(MANIFEST.parents[1]), *words]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr.decode().strip()}")
    return done.stdout


def provide(names: Iterable[str]) -> dict[str, Path]:
    """Build those of our own and find the peers on the PATH; what is missing there is excluded."""
    wanted = list(dict.fromkeys(names))
    own = [name for name in wanted if name in OWN]
    found = {name: path for name in wanted if name not in OWN and (path := shutil.which(name))}
    return (build(*own) if own else {}) | {name: Path(path) for name, path in found.items()}
