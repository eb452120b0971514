"""Measures in a process of its own, one at a time, and reports its progress to the agent."""

import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from webdyno.host.children import ending_with_us
from webdyno.model.run import folder_under_runs
from webdyno.run.child import words_of

ENDS_WITHIN_S = 30.0
LINES_OF_FAULT = 12


class Measuring:
    """One measurement at a time: two on one machine measure each other."""

    def __init__(self) -> None:
        self._busy = anyio.Lock()

    async def measure(
        self, call: str, time: str | None, asked: Mapping[str, object], context: Context
    ) -> tuple[Path, list[str]]:
        """Make one call of the Python API; give the folder, and the headlines that it printed.

        Each line of progress is reported. Raise ToolError with what webdyno said where it fails, or
        while another measurement goes on. A call that is given up is interrupted, which keeps what
        was measured.
        """
        if self._busy.locked():
            raise ToolError("another measurement is in progress; two at once distort each other")
        async with self._busy:
            folder = folder_under_runs(call, datetime.now().astimezone())
            given = {**asked, "time": time, "output": folder, "report": True}
            known = {key: value for key, value in given.items() if value not in (None, [], {})}
            words = words_of(call, known)
            process = await anyio.open_process(
                [*ending_with_us("TERM"), *words],
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            try:
                return folder, await _followed(process, context)
            finally:
                with anyio.CancelScope(shield=True):
                    await _ended(process)


async def _followed(process: Process, context: Context) -> list[str]:
    """Report what a process tells until it ends; give what it printed."""
    printed: list[str] = []
    told: list[str] = []
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
                told.append(line)
                await context.report_progress(next(step), message=line)
    if await process.wait():
        raise ToolError("\n".join(told[-LINES_OF_FAULT:]) or "webdyno failed and said nothing")
    return printed


async def _ended(process: Process) -> None:
    """Press Ctrl-C where it goes on, and wait for it to clean up."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with anyio.move_on_after(ENDS_WITHIN_S):
        await process.wait()
        return
    process.kill()
