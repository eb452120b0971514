"""webdyno as tools for agents, by the Model Context Protocol (https://modelcontextprotocol.io).

Each tool is a question that webdyno answers, measured in a process of its own. An agent rephrases
what it reads. So an answer has the verdict as one word, the sentence that may be made of it, and
the scope: "inconclusive" must not become "slightly faster".
"""

import logging
import signal
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from subprocess import PIPE
from types import MethodType
from typing import Annotated, Any

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, model_validator

from webdyno.core.errors import OperationError, UserError
from webdyno.core.judgement import Verdict
from webdyno.core.limits import GateAnswer
from webdyno.core.registry import commands, import_part
from webdyno.core.run import PAGE_FILE, folder_under_runs
from webdyno.core.text import printable, printable_within
from webdyno.host.children import ending_with_us, input_of, words_of
from webdyno.interfaces.python.api import open_run
from webdyno.interfaces.python.result import GateRun, Result
from webdyno.measure.folder import HEAD_FILE

logger = logging.getLogger(__name__)

MAY_SAY = {
    Verdict.FASTER: "A difference is shown. Quote the ratio with its interval.",
    Verdict.SLOWER: "A difference is shown. Quote the ratio with its interval.",
    Verdict.EQUIVALENT: "The two count as equal here. Don't report a difference.",
    Verdict.INCONCLUSIVE: "Nothing is shown. Don't say which is faster; more time may decide it.",
    Verdict.INVALID: "The measurement can't be trusted. Quote no figure; fix the cause first.",
    Verdict.INCOMPLETE: "Too little was measured for a verdict. Resume the run.",
    Verdict.MEASURED: "Values without a comparison. They say nothing about other systems.",
    GateAnswer.PASS: "Not worse than the limits allow (95% confidence). That is not 'faster'.",
    GateAnswer.FAIL: "Worse than a limit. Name the claims whose answer is 'worse'.",
}
"""What an answer supports. A gate's other answers read like the verdicts of that name."""


class _Printable(BaseModel):
    """Texts without characters that control a terminal: servers may have sent some."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _keep_printable(cls, given: object) -> object:
        return printable_within(given)


class AnswerWarning(_Printable):
    """What is wrong with a measurement, and what to do."""

    what: str
    fix: str


class Answer(_Printable):
    """What was found, how sure it is, and what was not tested."""

    answer: str
    """The verdict: faster, slower, equivalent, inconclusive, invalid, incomplete, measured; of a
    gate pass, fail, inconclusive or invalid. Several points have an answer each, in `rows`."""
    headline: str
    """The answer in one sentence."""
    may_say: str
    """What the answer supports. Say no more than this."""
    not_tested: str = ""
    """What was measured, and what the answer says nothing about."""
    rows: list[dict[str, Any]] = Field(default_factory=list)
    """Each metric's ratio to the baseline with its interval, or a gate's claims, or values."""
    warnings: list[AnswerWarning] = Field(default_factory=list)
    text: str = ""
    """What a terminal shows of it."""
    run: str = ""
    """The run's folder; empty where nothing had to be measured."""
    report: str = ""
    """The page for people, where it was written."""


def answer_of(result: Result) -> Answer:
    """Return the answer of a run."""
    gate = result.gate if isinstance(result, GateRun) else None
    answer: Verdict | GateAnswer | None = None
    may_say = "Each point has an answer of its own: quote them with their intervals."
    if gate or len(result.points) == 1:
        answer = gate.answer if gate else result.verdict
        may_say = MAY_SAY.get(answer) or MAY_SAY[Verdict(str(answer))]
    page = result.path / PAGE_FILE
    return Answer(
        answer=answer or "several",
        headline=gate.headline if gate else result.headline,
        may_say=may_say,
        not_tested=result.scope,
        rows=(gate.claims() if gate else result.ratios()) or result.values(),
        warnings=[AnswerWarning(what=warning.what, fix=warning.fix) for warning in result.warnings],
        text=result.text(),
        run=str(result.path),
        report=str(page) if page.is_file() else "",
    )


def answer_in(folder: Path) -> Answer:
    try:
        return answer_of(open_run(folder))
    except (UserError, OperationError) as error:
        raise ToolError(printable(str(error))) from None


def runs_below(folder: Path) -> list[Path]:
    """Return the runs in a folder, itself included, the first made first."""
    heads = sorted(folder.rglob(HEAD_FILE), key=lambda path: path.stat().st_mtime)
    return [head.parent for head in heads]


ENDS_WITHIN_S = 30.0
LINES_OF_FAULT = 12


class Measuring:
    """One measurement at a time: two on one machine measure each other."""

    def __init__(self, *, allow_commands: bool) -> None:
        self._busy = anyio.Lock()
        self._allow_commands = allow_commands

    async def measure(self, call: str, context: Context, **asked: object) -> tuple[Path, list[str]]:
        """Make one call of the Python API; return the folder, and the headlines that it printed.

        Each line of progress is reported. Raise ToolError with what webdyno said where it fails, or
        during another measurement. A call that is given up is interrupted, which keeps what
        was measured.
        """
        if self._busy.locked():
            raise ToolError("another measurement is in progress; two at once distort each other")
        async with self._busy:
            folder = folder_under_runs(call, datetime.now().astimezone())
            given = {key: value for key, value in asked.items() if value not in (None, [], {})}
            given |= {"output": folder, "report": True}
            try:
                with input_of(given, allow_commands=self._allow_commands) as passed:
                    process = await anyio.open_process(
                        [*ending_with_us("TERM"), *words_of(call)],
                        stdin=passed,
                        stdout=PIPE,
                        stderr=PIPE,
                        start_new_session=True,
                    )
            except OSError as error:
                raise ToolError(f"no measurement can be begun: {error.strerror}") from None
            logger.debug("process %d is the %s in %s", process.pid, call, folder)
            try:
                return folder, await _pass_on(process, context)
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)


async def _pass_on(process: Process, context: Context) -> list[str]:
    """Report what a process says until it ends; return the lines that it printed."""
    printed: list[str] = []
    messages: list[str] = []
    step = count(1)
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 (both are pipes)

    async def read_answer(stream: TextReceiveStream) -> None:
        text = "".join([part async for part in stream])
        printed.extend(text.splitlines())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_answer, TextReceiveStream(process.stdout, errors="replace"))
        rest = ""
        async for part in TextReceiveStream(process.stderr, errors="replace"):
            *lines, rest = (rest + part).split("\n")
            for line in filter(None, lines):
                messages.append(printable(line))
                await context.report_progress(next(step), message=messages[-1])
    if await process.wait():
        raise ToolError("\n".join(messages[-LINES_OF_FAULT:]) or "webdyno failed and said nothing")
    return printed


async def _end(process: Process) -> None:
    """Press Ctrl-C where it runs on, and wait for it to clean up."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with anyio.move_on_after(ENDS_WITHIN_S):
        await process.wait()
        return
    process.kill()


INSTRUCTIONS = """\
webdyno starts real web servers and applications on this machine, loads them, and says which is
faster, by how much, and how sure that is. A measurement takes half a minute to several minutes and
needs the machine for itself: don't build or test meanwhile, and measure one thing at a time.

A system is a stack of the catalog (nginx, apache-event, node, …: `webdyno list stacks`), or one of
the user's: `cmd:COMMAND` (it must listen on $PORT), `rev:REVISION` of the Git repository in this
folder (with a webdyno.toml, which `webdyno init` writes), `rev:.` (the working tree), `conf:FILE`,
`image:NAME`, `url:URL` on this machine.

{commands}

Report the verdict, the ratio with its interval, and what was not tested. `may_say` is what an
answer supports: inconclusive is not "slightly faster", and passing a gate is not "faster". Don't
repeat a measurement until its answer pleases: that makes false answers likely. Ask for more time
instead."""

COMMANDS = {
    True: "Tools run what you name, as the user does: name commands that the user knows of.",
    False: (
        "Here tools measure stacks of the catalog and url: alone. `cmd:`, `rev:`, `conf:`, "
        "`image:`, files and `${env:NAME}` in requests, and gates, which build revisions, take "
        "`webdyno mcp --allow-commands`."
    ),
}
"""By whether commands are allowed."""
System = Annotated[str, Field(description="nginx, cmd:COMMAND, rev:REVISION, conf:FILE, url:URL")]
Paths = Annotated[list[str] | None, Field(description="Paths to request, such as /search?q=a")]
Time = Annotated[str | None, Field(description="The longest to measure, such as 60s or 5m")]
Settings = Annotated[
    dict[str, Any] | None,
    Field(description='Settings by dotted key, such as {"load.connections": 16}'),
]


async def compare(
    measuring: Measuring,
    context: Context,
    system: System,
    baseline: System,
    paths: Paths = None,
    time: Time = None,
    settings: Settings = None,
) -> Answer:
    """Compare a system with a baseline under the same load: throughput, latency, CPU."""
    systems = {"system": system, "baseline": baseline}
    folder, _ = await measuring.measure(
        "compare", context, **systems, paths=paths, time=time, settings=settings
    )
    return answer_in(folder)


async def gate(
    measuring: Measuring,
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
    folder, headlines = await measuring.measure(
        "gate", context, base=base, head=head, fail_if=fail_if, paths=paths, time=time
    )
    if runs_below(folder):
        return answer_in(folder)
    return Answer(
        answer=GateAnswer.PASS,
        headline=" ".join(headlines),
        may_say="Nothing that is measured has changed, so nothing was measured.",
    )


async def capacity(
    measuring: Measuring,
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
    systems = {"system": system, "baseline": baseline}
    folder, _ = await measuring.measure(
        "capacity", context, **systems, slo=slo, paths=paths, time=time
    )
    return answer_in(folder)


async def explain(
    measuring: Measuring,
    context: Context,
    run: Annotated[str, Field(description="Folder of a comparison, as its answer names it")],
    time: Time = None,
) -> list[Answer]:
    """Find the bottleneck of a run: measure each variant again with less of one resource."""
    folder, _ = await measuring.measure("explain", context, folder=run, time=time)
    return [answer_in(path) for path in runs_below(folder)]


def report(_: Measuring, run: Annotated[str, Field(description="Folder of a run")]) -> Answer:
    """Judge a run again from its records; nothing is measured."""
    return answer_in(Path(run))


MEASURES = ToolAnnotations(
    # It starts servers and loads them; a system that runs already may change its data.
    read_only_hint=False,
    destructive_hint=True,
    idempotent_hint=False,
    open_world_hint=True,
)
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def make_server(*, allow_commands: bool) -> MCPServer:
    """Return the server with its tools, which may run the commands that are named or not."""
    server = MCPServer(
        "webdyno",
        instructions=INSTRUCTIONS.format(commands=COMMANDS[allow_commands]),
        version=version("webdyno"),
        log_level="ERROR",
    )
    measuring = Measuring(allow_commands=allow_commands)
    for command in commands().values():
        if command.tool:
            tool = import_part(command.tool)
            annotations = READS if tool is report else MEASURES
            # Bound, so that an agent sees the arguments that it gives.
            server.tool(command.name, annotations=annotations)(MethodType(tool, measuring))
    return server
