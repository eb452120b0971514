"""Heads of runs of others: whatever is in them, they are read in little time and memory."""

import pytest
from pydantic import ValidationError

from builders import run_head
from webdyno.core.patterns import MOST_IGNORED
from webdyno.core.run import RunHead


def read(**changes: object) -> RunHead:
    """Read a head whose experiment has these keys."""
    head = run_head()
    changed = head.experiment.replace(**changes)
    return RunHead.model_validate_json(head.replace(experiment=changed).model_dump_json())


def test_patterns_are_few_and_not_looked_at_in_each_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 1,000 letters can take a tenth of a second."""
    monkeypatch.delattr("regex.compile")
    assert read(ignore=["("] * MOST_IGNORED)
    with pytest.raises(ValidationError, match="at most 100 items"):
        read(ignore=["a"] * (MOST_IGNORED + 1))
