"""Workflows of the project, and those that the docs show, by the linter that others use."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
LINTER = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"
SHOWN = re.compile(r"^```yaml\n(name: .*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_workflows_have_no_faults(tmp_path: Path) -> None:
    workflows = tmp_path / ".github/workflows"
    shutil.copytree(HOME / ".github/workflows", workflows)
    shown = SHOWN.findall((HOME / "docs/how-to/ci.md").read_text(encoding="utf-8"))
    assert len(shown) == 2
    for number, text in enumerate(shown):
        (workflows / f"shown-{number}.yml").write_text(text, encoding="utf-8")
    files = sorted(workflows.iterdir())
    done = subprocess.run(
        ["go", "run", LINTER, *files], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
