"""`webdyno ui`: the runs of a folder as a local page."""

import os
import socket
import sys
import threading
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated

from cyclopts import Parameter

from webdyno.core.errors import OperationError, UserError
from webdyno.core.exit_codes import Exit
from webdyno.interfaces.cli.flags import CatalogDirs

HIGHEST_PORT = 65_535
ANSWERED_WITHIN_S = 3
"""So long responses are waited for when it is to end."""


def ui(
    folder: Annotated[Path, Parameter(help="DIR: the folder whose runs are shown.")] = Path("runs"),
    *,
    port: Annotated[int, Parameter(help="NUMBER: where it listens [default: a free port]")] = 0,
    catalog: CatalogDirs = (),
) -> Exit:
    """Show the runs of a folder on a local web page.

    Runs are shown live, compared and exported, and comparisons can be started; what would build or
    run code of yours (rev:, conf:) is asked here, on the terminal. It listens on 127.0.0.1 alone;
    the address that it prints has a token in it. Ctrl-C ends it, and a run that was started from
    it.

    For example

        webdyno ui

        webdyno ui results --port 8080
    """
    if not 0 <= port <= HIGHEST_PORT:
        raise UserError(f"--port {port}: should be from 0 to {HIGHEST_PORT}")
    import uvicorn

    from webdyno.config import Catalogue
    from webdyno.interfaces.ui.app import make_app
    from webdyno.interfaces.ui.guard import ImpatientProtocol
    from webdyno.interfaces.ui.runs import Runs
    from webdyno.interfaces.ui.starting import Starter
    from webdyno.media.console import plain_console

    runs, token = Runs(folder), token_urlsafe(24)
    starter = Starter(runs.root, _agrees if sys.stdin.isatty() else None)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen()  # who reads the address may ask at once
        except OSError as error:
            raise OperationError(f"--port {port}: can't be listened on: {error.strerror}") from None
        port = listening.getsockname()[1]
        app = make_app(runs, Catalogue.load(catalog), starter, token, port, _defect)
        plain_console().print(f"http://127.0.0.1:{port}/{token}/", soft_wrap=True)
        config = uvicorn.Config(
            app,
            log_level="critical",
            http=ImpatientProtocol,
            ws="none",
            timeout_graceful_shutdown=ANSWERED_WITHIN_S,
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            starter.end()
            _leave_threads()
    return Exit.OK


def _agrees(question: str) -> bool:
    from webdyno.interfaces.cli.progress import asked

    return asked(question, usual=False)


def _leave_threads() -> None:
    """End at once where a thread still judges a run: Python would wait for it, however long."""
    if any(
        thread is not threading.main_thread() and not thread.daemon
        for thread in threading.enumerate()
    ):
        sys.stdout.flush()
        os._exit(Exit.INTERRUPTED)


def _defect(error: Exception) -> str:
    from webdyno.launch.ending import keep_traceback
    from webdyno.media.console import notify

    said = keep_traceback(error, "ui")
    notify(said)
    return said
