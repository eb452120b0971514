"""Has a server's own program read a configuration: as the user it will run as, within limits."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import in_session, no_orphans
from webdyno.host.users import hand_over
from webdyno.systems.conf.relocation import RelocationRequest

WITHIN_S = 15
MOST_BYTES = 32_000_000
"""Of what it prints."""
MOST_CPU_S = 10
MOST_MEMORY_BYTES = 256_000_000
FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProgramOutput(NamedTuple):
    """What a program said, and how it ended."""

    code: int
    printed: str
    complained: str


def program_path(name: str, package: str = "") -> str:
    """Give where a program is that reads a configuration.

    Raise OperationError where there is none.
    """
    if path := shutil.which(name, path=FOLDERS):
        return path
    raise OperationError(
        f"the configuration is read by the program {name}, which isn't here; on Debian and Ubuntu: "
        f"apt-get install {package or name}"
    )


@contextmanager
def readable(request: RelocationRequest, text: str, *, differs: bool = False) -> Iterator[Path]:
    """Give the configuration where its user can read it: the file, or a copy with this text.

    The file itself may be private to who calls webdyno, or have been changed (`differs`).
    """
    user = request.user
    if not differs and (user is None or user.may_read(request.file)):
        yield request.file
        return
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above, "copy")
        folder.mkdir(mode=0o700)
        copy = folder / request.file.name
        copy.write_text(text, encoding="utf-8")
        copy.chmod(0o600)
        hand_over(folder, user)
        Path(above).chmod(0o711)
        yield copy


def run_reader(
    request: RelocationRequest,
    words: Sequence[str | Path],
    environment: Mapping[str, str],
    runs: Sequence[str] = (),
) -> ProgramOutput:
    """Run a program that reads the configuration; raise UserError where it comes to no end.

    What the configuration has it run, runs as that user as well; `runs` says where it does so.
    """
    most = (f"--data={MOST_MEMORY_BYTES}", f"--fsize={MOST_BYTES}", f"--cpu={MOST_CPU_S}")
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained, no_orphans():
        with in_session(
            [program_path("prlimit", "util-linux"), *most, "--", *words],
            output=printed,
            errors=complained,
            user=request.user,
            environment={"PATH": FOLDERS, **environment},
            folder=request.file.parent,
        ) as process:
            try:
                code = process.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                raise _too_much(request, words, runs) from None
        texts = []
        for file in (printed, complained):
            file.seek(0)
            texts.append(file.read(MOST_BYTES).decode(errors="replace"))
    if code < 0:
        raise _too_much(request, words, runs)
    return ProgramOutput(code, *texts)


def _too_much(
    request: RelocationRequest, words: Sequence[str | Path], runs: Sequence[str]
) -> UserError:
    name = Path(words[0]).name
    if runs:
        return UserError(
            f"{'; '.join(runs)}: {name} needs too much time or memory for that; have it run what "
            "ends soon and prints little"
        )
    return UserError(
        f"{request.file}: {name} needs too much time or memory to read it; include less"
    )
