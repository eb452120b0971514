"""Puts the load engine into wheels, linked statically, so that nobody who installs one needs Rust.

    .dyno/uv/bin/uv build

An editable installation, as `./dyno` makes it, uses the engine that cargo built in the checkout.
"""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = "-C target-feature=+crt-static"
OLDEST_GLIBC = "2_17"
"""Of the tag only: a static program needs none."""


class EngineHook(BuildHookInterface[Any]):
    """Builds the engine for the machine that builds the wheel, and tags the wheel with it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it, unless the package is used where it lies."""
        if version == "editable":
            return
        machine = platform.machine()
        target = f"{machine}-unknown-linux-gnu"
        engine = Path(self.root) / "loadgen"
        flags = f"{os.environ.get('RUSTFLAGS', '')} {STATIC}".strip()
        try:
            subprocess.run(
                [
                    "cargo",
                    "build",
                    "--profile=wheel",
                    "--locked",
                    "--bin",
                    "loadgen",
                    "--target",
                    target,
                    "--manifest-path",
                    str(engine / "Cargo.toml"),
                ],
                cwd="/",  # Cargo takes settings from there and above, whoever wrote them
                env={**os.environ, "RUSTFLAGS": flags},
                check=True,
            )
        except FileNotFoundError:
            raise SystemExit(
                "webdyno's load engine is written in Rust, and there is no cargo here: install "
                "Rust (https://rustup.rs), or a wheel of webdyno, which holds the engine"
            ) from None
        built = engine / "target" / target / "wheel/loadgen"
        build_data["force_include"][str(built)] = "webdyno/bin/loadgen"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{OLDEST_GLIBC}_{machine}"
