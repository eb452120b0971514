"""Which files of webdyno something passes: those whose functions are called."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import webdyno

HOME = Path(webdyno.__file__).parent


class CalledFiles:
    """Notes the files of webdyno whose functions are called; what is only imported isn't."""

    def __init__(self) -> None:
        """Begin with nothing called."""
        self.all: set[str] = set()

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Note what is called inside."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def called(self, file: str) -> None:
        """Take down a file."""
        self.all.add(file)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        of_ours = file.startswith(str(HOME)) and file.endswith(".py")
        if event == "call" and of_ours and not _imports(frame):
            self.called(file)


def _imports(frame: FrameType | None) -> bool:
    """Whether a function is called because a module is imported: on its outermost level."""
    while frame is not None and frame.f_back is not None:
        if frame.f_code.co_name == "<module>" and "importlib" in frame.f_back.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def listed(what: str, files: Iterable[str]) -> str:
    """Say how many files there are, and which."""
    names = sorted(str(Path(file).relative_to(HOME)) for file in files)
    return "\n    ".join([f"{what}: {len(names)} files", *names]) + "\n"
