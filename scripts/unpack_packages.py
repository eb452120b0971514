"""Unpacks packages of the distribution whose files tests read, without installing them.

Debian's `apache2` would start a server of its own, and change what all tests see in /etc.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("apache2",)
FOLDER = Path(__file__).parents[1] / ".dyno/debian"


def main() -> int:
    """Unpack what isn't there; without a network the tests of these files are passed over."""
    for package in PACKAGES:
        if not (FOLDER / package).is_dir():
            _unpack(package)
    return 0


def _unpack(package: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as there:
        try:
            subprocess.run(
                ["apt-get", "download", "-qq", package],
                check=True,
                cwd=there,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            (archive,) = Path(there).glob("*.deb")
            subprocess.run(["dpkg-deb", "-x", archive, Path(there, "files")], check=True)
        except (OSError, subprocess.CalledProcessError, ValueError):
            print(f"{package} can't be got: tests of its files are passed over")  # noqa: T201
            return
        Path(there, "files").rename(FOLDER / package)


if __name__ == "__main__":
    sys.exit(main())
