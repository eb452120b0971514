"""Starts a stack, or asks it for its versions, with what goes wrong as one message."""

import errno
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.model.errors import OperationError
from webdyno.model.format import indented
from webdyno.model.setting import SettingValue
from webdyno.model.stack import Site, Stack
from webdyno.stack.layout import Placement
from webdyno.stack.ready import FirstRequest
from webdyno.stack.running import RunningStack
from webdyno.stack.service import StackDied


def start_stack(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    *,
    folder: Path,
    testbed: Testbed,
    port: int | None = None,
    memory_bytes: int | None = None,
    placement: Placement | None = None,
    asked: FirstRequest | None = None,
) -> RunningStack:
    """Start a stack and wait until it answers for the site.

    `settings` are those of stack and site; `folder` keeps rendered configurations and logs; `port`
    is a free one unless given; `memory_bytes` limits all services together; with a `placement` only
    the services of this host are started; `asked` shows that a user's own system is ready. Raise
    OperationError, with the server's own words, when it can't be started.
    """
    with _errors_told(stack, folder):
        running = RunningStack(
            stack,
            settings,
            site,
            folder=folder,
            testbed=testbed,
            port=port,
            memory_bytes=memory_bytes,
            placement=placement,
            asked=asked,
        )
        try:
            running.start()
        except BaseException:
            running.stop()
            raise
    return running


def ask_versions(
    stack: Stack,
    settings: Mapping[str, SettingValue],
    site: Site,
    testbed: Testbed,
    asked: FirstRequest | None = None,
) -> dict[str, str]:
    """Ask the services of a stack, by role, for their versions.

    None of them is started but a user's own system, of which nobody knows yet whether it starts:
    raise OperationError, with its own words, where it doesn't.
    """
    with _errors_told(stack, Path.cwd()), Workspace() as scratch:
        folder = scratch.path / "kept"
        with RunningStack(
            stack, settings, site, folder=folder, testbed=testbed, asked=asked
        ) as laid_out:
            if stack.is_own:
                _try_out(laid_out)
            return laid_out.versions()


def _try_out(running: RunningStack) -> None:
    """Start a stack; tell why it doesn't without a word of a log that nobody keeps."""
    try:
        running.start()
    except StackDied as died:
        said = f"; what it said last:\n{indented(died.log_tail)}" if died.log_tail else ""
        raise OperationError(died.what + said) from None


@contextmanager
def _errors_told(stack: Stack, folder: Path) -> Iterator[None]:
    """Tell what the operating system refuses as one message."""
    try:
        yield
    except OSError as error:
        fix = f"; {_make_room(folder)}" if error.errno == errno.ENOSPC else ""
        raise OperationError(f"stack {stack.name} can't be started: {error}{fix}") from None


def _make_room(folder: Path) -> str:
    """Say where room is short: where logs are kept, or where servers have their files."""
    kept = next(place for place in (folder, *folder.parents) if place.is_dir())
    full = min((kept, Path(tempfile.gettempdir())), key=lambda place: shutil.disk_usage(place).free)
    return f"make room in {full.absolute()}"
