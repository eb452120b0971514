"""The benchmarks run what the Rust tests have built: speed is not asked here."""

import pytest

from rig.programs import PROFILE


@pytest.fixture(autouse=True)
def built_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose the profile of `cargo test`."""
    monkeypatch.setenv(PROFILE, "dev")
