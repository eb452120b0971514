"""What a service of a Compose file has of this machine: folders, files, and rights beyond those."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from webdyno.core.errors import UserError
from webdyno.core.tables import is_table, long_form, several, table
from webdyno.systems.containers.compose_file import NAME, ComposeProject
from webdyno.systems.containers.compose_relations import env_files
from webdyno.systems.env_files import or_example

USUAL_CAPABILITIES = re.compile(
    r"(?:CAP_)?(?:CHOWN|DAC_OVERRIDE|FOWNER|FSETID|IPC_LOCK|KILL|NET_BIND_SERVICE|SETFCAP|SETGID"
    r"|SETPCAP|SETUID|SYS_CHROOT|SYS_NICE)",
    re.IGNORECASE,
)
"""Those that containers have anyway, and two that reach nothing of others."""
OF_VOLUMES = frozenset({"", "ro", "rw", "z", "Z", "nocopy", "cached", "delegated", "consistent"})
"""Options of volumes that reach no other folder, as those of an overlay do."""
ELSEWHERE = re.compile(
    r"(?:containers-storage|dir|docker-archive|docker-daemon|oci|oci-archive|sif|tarball):"
)
"""Images that Podman takes from files and other places of a machine (containers-transports(5))."""
RESTRICTING = re.compile(r"no-new-privileges([:=]true)?")
MOUNTED = {"secrets": "/run/secrets/", "configs": "/"}
"""Kinds of files that services name, and where they have them."""
_MOUNT = re.compile(
    r"--(?:tmpfs=|volume=(?:(?P<source>[^:]*):)?)(?P<target>/[^:]*)(?::(?P<options>.*))?"
)


def rights_of(services: Mapping[str, Any], project: ComposeProject, top: Path) -> Iterator[str]:
    """Return keys and values that let a container reach beyond itself and a folder."""
    for name, service in services.items():
        if service.get("privileged") is True:
            yield f"{name}.privileged"
        if ELSEWHERE.match(image := str(service.get("image", ""))):
            yield f"{name}.image {image}"
        for key, harmless in (("cap_add", USUAL_CAPABILITIES), ("security_opt", RESTRICTING)):
            for each in several(service.get(key) or []):
                if not harmless.fullmatch(each):
                    yield f"{name}.{key} {each}"
        for volume in service.get("volumes") or ():
            options = _volume_text(volume).split(":", 2)[2:]
            yield from (
                f"{name}.volumes {option}"
                for option in ",".join(options).split(",")
                if option not in OF_VOLUMES
            )
        for key, source in _files_of(service, project):
            inside = _place(source, project.folder)
            if not inside.is_relative_to(top.resolve()):
                yield f"{name}.{key} {source}"


def _files_of(service: Mapping[str, Any], project: ComposeProject) -> Iterator[tuple[str, str]]:
    """Yield the files and folders of this machine that a service is given, by key."""
    for volume in service.get("volumes") or ():
        if (source := _source(volume)) and not NAME.fullmatch(source):
            yield "volumes", source
    for kind in MOUNTED:
        for entry in service.get(kind) or ():
            if file := _definition(entry, kind, project)[1]:
                yield kind, file
    for form in env_files(service):
        path = str(form.get("path"))
        yield "env_file", path
        if (example := or_example(project.folder / path)) != project.folder / path:
            yield "env_file", str(example)
    if (keys := service.get("build")) is not None:
        build_form = long_form(keys, "context")
        context = str(build_form.get("context", "."))
        yield "build", context
        yield "build", str(Path(context, str(build_form.get("dockerfile", "Dockerfile"))))


def _source(volume: object) -> str:
    """Return the path of a volume on this machine, or its name; empty where it has none."""
    source, colon, _ = _volume_text(volume).partition(":")
    return source if colon else ""


def _volume_text(volume: object) -> str:
    """Return a volume in the short form, `SOURCE:TARGET:ro`."""
    if not is_table(volume):
        return str(volume)
    source, target = (str(volume.get(key) or "") for key in ("source", "target"))
    if ":" in source or ":" in target:
        raise UserError(f"a volume's source and target have no colon, as {source or target} has")
    mode = ":ro" if volume.get("read_only") else ""
    return f"{source}:{target}{mode}" if source else target


def volume_of(volume: object, folder: Path, where: str) -> str:
    """Return a volume as engines take it; named ones are new, and empty, with each start."""
    text = _volume_text(volume)
    source, colon, rest = text.partition(":")
    if not colon or NAME.fullmatch(source):
        return text
    path = _place(source, folder)
    if not source.startswith("/") and not path.exists():
        if source.startswith(".") and not path.suffix:  # Compose makes such a folder, empty
            return rest.partition(":")[0]
        raise UserError(f"{where}.volumes: there is no {path}")
    return _mounted(path, rest, f"{where}.volumes")


def _place(source: str, folder: Path) -> Path:
    """Return where a path leads; `~` of a user that there isn't is a name as any other."""
    with suppress(RuntimeError):
        return (folder / Path(source).expanduser()).resolve()
    return (folder / source).resolve()


def _mounted(path: Path, rest: str, where: str) -> str:
    """Return a path and where it is mounted, for an engine, to which a colon ends the path."""
    if ":" in str(path):
        raise UserError(f"{where}: {path} has a colon, by which engines end a path: rename it")
    return f"{path}:{rest}"


def mounts_of_files(keys: Mapping[str, Any], project: ComposeProject, where: str) -> Iterator[str]:
    """Return the files that a service has of `secrets` and `configs`, and where it has them."""
    for kind, folder in MOUNTED.items():
        for entry in keys.get(kind) or ():
            name, file = _definition(entry, kind, project)
            target = str(long_form(entry, "source").get("target") or name)
            path = (project.folder / file).resolve()
            if not file or not path.is_file():
                raise UserError(
                    f"{where}.{kind}: {name} is no file that is there; give it one, as in "
                    f"{kind}: {{{name}: {{file: ./{name}.txt}}}}"
                )
            there = target if target.startswith("/") else folder + target
            yield _mounted(path, there, f"{where}.{kind}")


def _definition(entry: object, kind: str, project: ComposeProject) -> tuple[str, str]:
    """Return the name of a secret or configuration, and its file; empty where it has none."""
    name = str(long_form(entry, "source").get("source", ""))
    return name, str(table(project.whole, kind, name).get("file") or "")


@dataclass(frozen=True)
class _Mount:
    """What lies at a place in a container."""

    target: PurePosixPath
    source: Path | None
    """The folder or file of this machine; None for what begins empty."""
    is_writable: bool

    def targets_towards(self, inner: Path) -> Iterator[tuple[PurePosixPath, Path]]:
        """Yield a path within it and the folders on the way there: where they are, and what."""
        if self.source and self.is_writable and self.source in inner.parents:
            for path in (inner, *inner.parents):
                if path == self.source:
                    return
                yield self.target / path.relative_to(self.source), path


def held_mounts(options: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return further options, by service, that keep each from exchanging what others are given.

    In a volume it could put a link to any folder into the place of one that the next start mounts.
    What is mounted itself can't be moved away in a container without further rights.
    """
    mounts = {name: [*_mounts_in(texts)] for name, texts in options.items()}
    sources = {mount.source for each in mounts.values() for mount in each if mount.source}
    held: dict[str, list[str]] = {}
    for name, its in mounts.items():
        more = {
            target: path
            for mount in its
            for source in sources
            for target, path in mount.targets_towards(source)
            if not any(_hides(other, mount, target) for other in its)
        }
        held[name] = [f"--volume={path}:{target}" for target, path in sorted(more.items())]
    return held


def _hides(other: _Mount, mount: _Mount, target: PurePosixPath) -> bool:
    """Whether what another mount has at a place within one is there instead."""
    return mount.target in other.target.parents and other.target in (target, *target.parents)


def _mounts_in(options: Sequence[str]) -> Iterator[_Mount]:
    for match in filter(None, map(_MOUNT.fullmatch, options)):
        source = match["source"] or ""
        yield _Mount(
            target=PurePosixPath(match["target"]),
            source=Path(source) if source.startswith("/") else None,
            is_writable="ro" not in (match["options"] or "").split(","),
        )
