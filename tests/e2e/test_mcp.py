"""The tools for agents, by the client of the protocol's own software, on real servers."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from e2e.commands import WEBDYNO, environment, left_behind
from e2e.own import CMD, SERVER, make_repository
from report import comparisons
from webdyno.core.errors import OperationError
from webdyno.interfaces.cli.serving import mcp

if TYPE_CHECKING:  # all of this takes a while to import, in each worker
    from mcp.client import Client
    from mcp_types import CallToolResult

QUICK = {
    "measure.slot_s": 0.1,
    "measure.warmup_s": 0,
    "measure.slots_per_variant": 2,
    "measure.patience": 1,
    "measure.budget_s": 1,
}


def with_client(folder: Path, use: "Callable[[Client], Awaitable[None]]", *flags: str) -> None:
    """Start the server as an agent does, and use it."""
    from mcp import StdioServerParameters, stdio_client
    from mcp.client import Client

    server = StdioServerParameters(
        command=str(WEBDYNO), args=["mcp", *flags], env=environment(folder), cwd=folder
    )

    async def used() -> None:
        async with Client(stdio_client(server, errlog=sys.stderr)) as client:
            await use(client)

    anyio.run(used)


def said(result: "CallToolResult") -> str:
    return " ".join(getattr(it, "text", "") for it in result.content)


def answered(result: "CallToolResult") -> dict[str, Any]:
    assert not result.is_error, said(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def test_an_agent_compares_and_reads_the_answer_again(tmp_path: Path) -> None:
    """What can't be asked is said to it as to people."""
    reported: list[str] = []

    async def use(client: "Client") -> None:
        tools = {it.name for it in (await client.list_tools()).tools}
        assert tools == {"compare", "gate", "capacity", "explain", "report"}
        wrong = await client.call_tool("compare", {"system": "ngins", "baseline": "nginx"})
        assert wrong.is_error
        assert "did you mean nginx" in said(wrong)
        lacking = await client.call_tool("report", {"run": "nowhere"})
        assert lacking.is_error
        assert "nowhere" in said(lacking)

        async def hear(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            reported.append(message or "")

        asked = {"system": "nginx", "baseline": "apache-event", "settings": QUICK}
        answer = answered(await client.call_tool("compare", asked, progress_callback=hear))
        assert answer["answer"] in {"faster", "slower", "equivalent", "inconclusive"}
        assert answer["not_tested"]
        assert Path(tmp_path, answer["report"]).is_file()
        assert any("round" in line for line in reported)
        again = answered(await client.call_tool("report", {"run": answer["run"]}))
        assert again == answer

    with_client(tmp_path, use)
    assert left_behind(tmp_path) == []


@pytest.mark.timeout(120)
def test_a_call_that_is_given_up_leaves_nothing_running(tmp_path: Path) -> None:
    async def use(client: "Client") -> None:
        asked = {"system": "nginx", "baseline": "apache-event", "time": "5m"}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "compare", asked)
            with anyio.fail_after(60):
                while not [*tmp_path.glob("runs/*/run.json")]:
                    await anyio.sleep(0.1)
            refused = await client.call_tool("compare", asked)
            assert refused.is_error
            assert "in progress" in said(refused)
            tasks.cancel_scope.cancel()

    with_client(tmp_path, use)
    assert left_behind(tmp_path) == []


COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("compare", {"system": "cmd:touch made", "baseline": "nginx"}),
    ("compare", {"system": "nginx", "baseline": "rev:."}),
    ("compare", {"system": "image:alpine", "baseline": "nginx"}),
    ("compare", {"system": "a=conf:nginx.conf", "baseline": "nginx"}),
    ("capacity", {"system": "cmd:touch made"}),
    ("gate", {"base": "HEAD"}),
    ("gate", {"base": "nginx", "head": "cmd:touch made"}),
    ("compare", {"settings": {"state.before_round": ["touch made"]}}),
    ("compare", {"settings": {"variants.nginx.stack": "cmd:touch made"}}),
    ("compare", {"settings": {"values.user.file": "secrets.csv"}}),
    ("compare", {"settings": {"load.arrivals": "replay", "load.replay_file": "secrets.csv"}}),
    ("compare", {"settings": {"requests": [{"path": "/", "body_file": "secrets.csv"}]}}),
    ("compare", {"settings": {"load.headers.X": "${env:HOME}"}}),
    ("compare", {"settings": {}, "paths": ["/?home=${env:HOME}"]}),
    ("explain", {"run": "kept"}),
]


def test_tools_run_no_commands_unless_they_may(tmp_path: Path) -> None:
    """Nothing is built either: what a revision's build would make isn't there."""
    app = '[app]\nbuild = "touch ../../../../../../made made"\nstart = "touch made"\n'
    make_repository(tmp_path, {"webdyno.toml": app, "nginx.conf": "events {}\n"})
    (tmp_path / "changed").touch()
    kept = comparisons.decided()
    load = kept.head.experiment.load.replace(headers={"X": "${env:HOME}"})
    experiment = kept.head.experiment.replace(load=load)
    replace(kept, head=kept.head.replace(experiment=experiment)).stored(tmp_path / "kept")

    async def use(client: "Client") -> None:
        hints = {it.name: it.annotations for it in (await client.list_tools()).tools}
        for name, hint in hints.items():
            assert hint is not None
            assert bool(hint.read_only_hint) == (name == "report")
            assert bool(hint.destructive_hint) == bool(hint.open_world_hint) == (name != "report")
        for tool, asked in COMMANDS:
            systems = {} if tool == "gate" else {"system": "nginx", "baseline": "apache-event"}
            refused = await client.call_tool(tool, (systems if "settings" in asked else {}) | asked)
            assert refused.is_error, asked
            assert "webdyno mcp --allow-commands" in said(refused), said(refused)

    with_client(tmp_path, use)
    assert not [*tmp_path.rglob("made")]


def test_what_controls_a_terminal_reaches_no_agent(tmp_path: Path) -> None:
    from webdyno.interfaces.mcp import Answer

    colored = "\x1b[31mred\x9b"
    answer = Answer.model_validate(
        {
            "answer": "invalid",
            "headline": colored,
            "may_say": "",
            "rows": [{"why": [colored]}],
            "warnings": [{"what": colored, "fix": ""}],
        }
    )
    shown = answer.model_dump_json()
    assert "red" in shown
    assert not {"\x1b", "\x9b", "\\u001b"}.intersection(shown)
    assert "\\u001b" not in shown

    async def use(client: "Client") -> None:
        lacking = await client.call_tool("report", {"run": colored})
        assert lacking.is_error
        assert "␛[31mred" in said(lacking)

    with_client(tmp_path, use)


def test_with_the_flag_they_do(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)

    async def use(client: "Client") -> None:
        systems = {"system": f"a={CMD}", "baseline": f"b={CMD}", "paths": ["/"]}
        settings = QUICK | {"load.connections": 2, "state.before_round": ["touch made"]}
        asked = {**systems, "settings": settings}
        assert answered(await client.call_tool("compare", asked))["answer"]

    with_client(tmp_path, use, "--allow-commands")
    assert [*tmp_path.rglob("made")]


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("mcp", "webdyno.interfaces.mcp"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(
        OperationError, match=r"agents take mcp: install it next to.*\n +uv pip .* mcp$"
    ):
        mcp()
