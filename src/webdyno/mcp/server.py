"""The server: each tool is a question that webdyno answers."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from webdyno.lab.api import open_run
from webdyno.mcp.answers import Answer, answer_of, answer_without_run, runs_below
from webdyno.mcp.measuring import Measuring
from webdyno.model.errors import OperationError, UserError

INSTRUCTIONS = """\
webdyno starts real web servers and applications on this machine, loads them, and says which is
faster, by how much, and how sure that is. A measurement takes half a minute to several minutes and
needs the machine for itself: don't build or test meanwhile, and measure one thing at a time.

A system is a stack of the catalog (nginx, apache-event, node, …: `webdyno list stacks`), or one of
the user's: `cmd:COMMAND` (it must listen on $PORT), `rev:REVISION` of the Git repository in this
folder (with a webdyno.toml, which `webdyno init` writes), `rev:.` (the working tree), `conf:FILE`,
`image:NAME`, `url:URL` on this machine.

Report the verdict, the ratio with its interval, and what was not tested. `may_say` is what an
answer supports: inconclusive is not "slightly faster", and passing a gate is not "faster". Don't
repeat a measurement until its answer pleases: that makes false answers likely. Ask for more time
instead."""

System = Annotated[str, Field(description="nginx, cmd:COMMAND, rev:REVISION, conf:FILE, url:URL")]
Paths = Annotated[list[str] | None, Field(description="Paths to request, such as /search?q=a")]
Time = Annotated[str | None, Field(description="Total measuring time, such as 60s or 5m")]
Settings = Annotated[
    dict[str, Any] | None,
    Field(description='Settings by dotted key, such as {"load.connections": 16}'),
]
MEASURES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def make_server() -> MCPServer:
    """Give the server with its tools."""
    server = MCPServer(
        "webdyno", instructions=INSTRUCTIONS, version=version("webdyno"), log_level="ERROR"
    )
    measuring = Measuring()

    @server.tool(annotations=MEASURES)
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
        return _read(folder)

    @server.tool(annotations=MEASURES)
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
        """Tell whether a revision is worse than its baseline by more than the limits allow."""
        asked = {"base": base, "head": head, "fail_if": fail_if, "paths": paths}
        folder, printed = await measuring.measure("gate", time, asked, context)
        return _read(folder) if runs_below(folder) else answer_without_run(" ".join(printed))

    @server.tool(annotations=MEASURES)
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
        return _read(folder)

    @server.tool(annotations=MEASURES)
    async def explain(
        context: Context,
        run: Annotated[str, Field(description="Folder of a comparison, as its answer names it")],
        time: Time = None,
    ) -> list[Answer]:
        """Find the bottleneck of a run: measure each variant again with less of one resource."""
        folder, _ = await measuring.measure("explain", time, {"folder": run}, context)
        return [_read(path) for path in runs_below(folder)]

    @server.tool(annotations=READS)
    def report(run: Annotated[str, Field(description="Folder of a run")]) -> Answer:
        """Judge a run again from its records; nothing is measured."""
        return _read(Path(run))

    return server


def _read(folder: Path) -> Answer:
    try:
        return answer_of(open_run(folder))
    except (UserError, OperationError) as error:
        raise ToolError(str(error)) from None
