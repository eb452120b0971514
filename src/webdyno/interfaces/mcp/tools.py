"""The tools: each is made of a command, which names it, and answers a question of an agent."""

from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from webdyno.interfaces.mcp.server import (
    READS,
    AgentTool,
    Answer,
    Measuring,
    answer_in,
    answer_without_run,
    runs_below,
)

System = Annotated[str, Field(description="nginx, cmd:COMMAND, rev:REVISION, conf:FILE, url:URL")]
Paths = Annotated[list[str] | None, Field(description="Paths to request, such as /search?q=a")]
Time = Annotated[str | None, Field(description="The longest to measure, such as 60s or 5m")]
Settings = Annotated[
    dict[str, Any] | None,
    Field(description='Settings by dotted key, such as {"load.connections": 16}'),
]


def compare_tool(measuring: Measuring) -> AgentTool:
    """Make the tool that compares two systems."""

    async def compare(
        context: Context,
        system: System,
        baseline: System,
        paths: Paths = None,
        time: Time = None,
        settings: Settings = None,
    ) -> Answer:
        """Compare a system with a baseline under the same load: throughput, latency, CPU."""
        asked = {"system": system, "baseline": baseline, "paths": paths, "settings": settings}
        folder, _ = await measuring.measure("compare", time, asked, context)
        return answer_in(folder)

    return AgentTool(compare)


def gate_tool(measuring: Measuring) -> AgentTool:
    """Make the tool that judges a revision."""

    async def gate(
        context: Context,
        base: Annotated[str, Field(description="Git revision of the baseline")] = "origin/main",
        head: Annotated[str, Field(description="Revision to judge; . is the working tree")] = ".",
        fail_if: Annotated[
            list[str] | None, Field(description="Limits, such as 'cpu > +3%'; else webdyno's")
        ] = None,
        paths: Paths = None,
        time: Time = None,
    ) -> Answer:
        """Return whether a revision is worse than its baseline by more than the limits allow."""
        asked = {"base": base, "head": head, "fail_if": fail_if, "paths": paths}
        folder, printed = await measuring.measure("gate", time, asked, context)
        return answer_in(folder) if runs_below(folder) else answer_without_run(" ".join(printed))

    return AgentTool(gate)


def capacity_tool(measuring: Measuring) -> AgentTool:
    """Make the tool that searches for capacities."""

    async def capacity(
        context: Context,
        system: System,
        baseline: Annotated[str | None, Field(description="A second system to compare")] = None,
        slo: Annotated[
            list[str] | None, Field(description="Objectives, such as p99<50ms or failures<0.1%")
        ] = None,
        paths: Paths = None,
        time: Time = None,
    ) -> Answer:
        """Find the highest load that one or two systems carry while objectives hold."""
        asked = {"system": system, "baseline": baseline, "slo": slo, "paths": paths}
        folder, _ = await measuring.measure("capacity", time, asked, context)
        return answer_in(folder)

    return AgentTool(capacity)


def explain_tool(measuring: Measuring) -> AgentTool:
    """Make the tool that finds bottlenecks."""

    async def explain(
        context: Context,
        run: Annotated[str, Field(description="Folder of a comparison, as its answer names it")],
        time: Time = None,
    ) -> list[Answer]:
        """Find the bottleneck of a run: measure each variant again with less of one resource."""
        folder, _ = await measuring.measure("explain", time, {"folder": run}, context)
        return [answer_in(path) for path in runs_below(folder)]

    return AgentTool(explain)


def report_tool(_: Measuring) -> AgentTool:
    """Make the tool that reads runs."""

    def report(run: Annotated[str, Field(description="Folder of a run")]) -> Answer:
        """Judge a run again from its records; nothing is measured."""
        return answer_in(Path(run))

    return AgentTool(report, READS)
