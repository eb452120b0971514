"""All tools are here, and no engine, so that what is found doesn't depend on the machine."""

import pytest


@pytest.fixture(autouse=True)
def _every_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}")


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.systems.containers.choice.engine_answers", lambda: False)
