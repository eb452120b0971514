"""Each benchmark script says what it does and which flags it takes."""

from importlib import import_module
from pathlib import Path

import pytest

SCRIPTS = [
    path.stem
    for path in sorted((Path(__file__).parents[2] / "bench").glob("*.py"))
    if "def script()" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_help_with_examples(name: str) -> None:
    assert f"bench/{name}.py" in import_module(name).script().format_help()
