"""Fills in the templates of the catalogue: apart from webdyno, with little time and memory.

A template is a program. So all those of a stack are filled in by a child process that has become
the servers' user and ends soon, whatever they do; Jinja2's sandbox keeps them from Python's own
objects.
"""

import codecs
import gc
import hashlib
import json
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

# Else these are loaded when they are needed, by a user who may not read them.
import jinja2.constants
import jinja2.debug  # noqa: F401
from jinja2 import (
    BytecodeCache,
    FunctionLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
)
from jinja2.bccache import Bucket
from jinja2.sandbox import ImmutableSandboxedEnvironment

from webdyno.core.errors import UserError
from webdyno.core.files import checked_files
from webdyno.host.children import end_with_parent, gain_no_rights
from webdyno.host.users import ServerUser
from webdyno.servers.templates import Job, RenderedJob

Sources = Mapping[str, tuple[str, str]]
"""By name: a template's text and its path."""

CPU_S = 10
MEMORY_BYTES = 512 * 2**20
MOST_FILLED_BYTES = 64 * 2**20
SHORT = "text:"
"""Before the name of a short template; no file has a colon in its name."""

codecs.lookup("unicode-escape")  # for strings in templates; to be loaded by us, as above


def fill_in(jobs: Sequence[Job], user: ServerUser | None) -> list[RenderedJob]:
    """Fill in templates as the servers' user.

    Raise UserError that names the file, and the line where that is known, of a template that fails
    or takes too much time or memory.
    """
    sources = [_sources(job) for job in jobs]
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _fill_in_and_end(jobs, sources, user, write)
    os.close(write)
    try:
        with os.fdopen(read, "rb") as responses:
            messages = responses.read(MOST_FILLED_BYTES).splitlines()
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    last = json.loads(messages[-1]) if messages else {}
    if "error" in last:
        raise UserError(last["error"])
    if "filled" not in last:
        where = last.get("where", jobs[0].where)
        raise UserError(f"{where}: this template takes too much time or memory; make it simpler")
    for job, available in zip(jobs, sources, strict=True):
        _Filler(job, available).compile_all()
    return [RenderedJob(texts=texts, files=files) for texts, files in last["filled"]]


def _sources(job: Job) -> Sources:
    """Read the templates that a job may use: those next to its file, and neighbours it names."""
    if job.folder is None:
        return {}
    folder = job.folder
    own = {name: path for name, path in checked_files(folder).items() if path.is_file()}
    named = {name: folder.parent / name for name in job.files.values() if name not in own}
    for name, path in named.items():
        if not path.resolve().is_relative_to(folder.parent.resolve()):
            raise UserError(f"{job.where}: template {name} lies outside the catalog")
    sources = {}
    for name, path in (own | named).items():
        with suppress(UnicodeDecodeError, FileNotFoundError):  # it is reported when it is asked for
            sources[name] = (path.read_text(encoding="utf-8"), str(path))
    return sources


def _fill_in_and_end(
    jobs: Sequence[Job], sources: Sequence[Sources], user: ServerUser | None, write: int
) -> NoReturn:
    """What the child does: one line of JSON for each template it begins, the last one for all."""

    def note(what: object) -> None:
        content = json.dumps(what).encode() + b"\n"
        while content:
            content = content[os.write(write, content) :]

    try:
        gc.disable()  # it would copy our memory
        _confine(user)
        filled = []
        for job, available in zip(jobs, sources, strict=True):
            filler = _Filler(job, available, note)
            files = {name: filler.file(template) for name, template in job.files.items()}
            filled.append((filler.texts(job.texts), files))
        note({"filled": filled})
    except UserError as error:
        note({"error": str(error)})
    finally:
        os._exit(0)


def _confine(user: ServerUser | None) -> None:
    parent = os.getppid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if user is not None:
        os.setgroups([user.gid])
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    gain_no_rights()
    end_with_parent(signal.SIGKILL, parent)


class _TemplateCache(BytecodeCache):
    """Compiled templates: most of the work, and needed again in each round.

    webdyno itself compiles, and does not fill in, what a child has come to the end of; the next
    child inherits it.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._known.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._known[bucket.key, bucket.checksum] = bucket.code


_compiled = _TemplateCache()


class _Filler:
    """Fills in one job's templates, and reports which one it begins."""

    def __init__(
        self, job: Job, sources: Sources, note: Callable[[object], None] = lambda _: None
    ) -> None:
        self._job = job
        self._sources = sources
        self._notify = note
        self._shorts: dict[str, str] = {}
        self._jinja = ImmutableSandboxedEnvironment(
            loader=FunctionLoader(self._source),
            bytecode_cache=_compiled,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # configuration files, no web pages
        )

    def _source(self, name: str) -> tuple[str, str | None, None] | None:
        if name in self._shorts:
            return self._shorts[name], None, None
        return (*self._sources[name], None) if name in self._sources else None

    def _short(self, template: str) -> Template:
        # The text itself is no name: Jinja2 writes names into its code, quotes and all.
        name = f"{SHORT}{hashlib.sha256(template.encode()).hexdigest()}"
        self._shorts[name] = template
        return self._jinja.get_template(name)

    def compile_all(self) -> None:
        """Compile what `file` and `texts` fill in."""
        for name in self._job.files.values():
            if not _is_plain(self._sources[name][0]):
                self._jinja.get_template(name)
        for template in _leaves(self._job.texts):
            if not _is_plain(template):
                self._short(template)

    def file(self, name: str) -> str:
        """Fill in a template file."""
        text, path = self._sources.get(name, ("{{", f"{self._job.folder}/{name}"))
        if _is_plain(text):
            return text
        self._notify({"where": path})
        try:
            return self._jinja.get_template(name).render(self._job.context)
        except Exception as error:  # noqa: BLE001 (a template can raise whatever Python can)
            raise UserError(f"{self._place(error) or path}: {_reason(error)}") from None

    def _place(self, error: Exception) -> str | None:
        """File and line at which it stopped, from the traceback that Jinja2 rewrites."""
        if isinstance(error, TemplateSyntaxError) and error.filename:
            return f"{error.filename}:{error.lineno}"
        ours = {path for _, path in self._sources.values()}
        trace, place = error.__traceback__, None
        while trace is not None:
            if (path := trace.tb_frame.f_code.co_filename) in ours:
                place = f"{path}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place

    def texts(self, templates: Any) -> Any:  # noqa: ANN401 (any nesting of lists and mappings)
        """Fill in short templates, keeping their nesting."""
        if isinstance(templates, str):
            return self._text(templates)
        if isinstance(templates, Mapping):
            return {name: self.texts(inner) for name, inner in templates.items()}
        return [self.texts(inner) for inner in templates]

    def _text(self, template: str) -> str:
        if _is_plain(template):
            return template
        where = self._job.where
        self._notify({"where": f"{where}: {template!r}"})
        try:
            text = self._short(template).render(self._job.context)
        except Exception as error:  # noqa: BLE001 (as above)
            raise UserError(f"{where}: {_reason(error)} in {template!r}") from None
        if "\0" in text:
            raise UserError(f"{where}: there is a NUL byte in {template!r}")
        return text


def _leaves(texts: Any) -> Iterator[str]:  # noqa: ANN401 (any nesting of lists and mappings)
    if isinstance(texts, str):
        yield texts
        return
    for inner in texts.values() if isinstance(texts, Mapping) else texts:
        yield from _leaves(inner)


def _is_plain(template: str) -> bool:
    """Whether there is nothing to fill in: compiling takes a millisecond, and there are many."""
    return not any(mark in template for mark in ("{{", "{%", "{#"))


def _reason(error: Exception) -> str:
    if isinstance(error, TemplateError) and error.message:
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
