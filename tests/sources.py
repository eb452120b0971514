"""The modules of webdyno; programs of its catalogue are none of them."""

from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/webdyno"
MODULES = sorted(set(SOURCE.rglob("*.py")) - set((SOURCE / "catalog").rglob("*")))
