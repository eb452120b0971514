"""Makes the files of a site, once, and keeps them for later starts."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from webdyno.bench.workspace import home_folder, open_folder
from webdyno.model.site import MadeFile, Site

LITERAL = "root"
"""Folder of a site whose files are served as they are."""


def site_root(site: Site) -> Path:
    """Give the document root of a site; it is made anew when anything in its definition changed.

    Everybody may read it and only webdyno's own user may write.
    """
    sites = open_folder(home_folder() / "sites")
    made = sites / f"{site.name}-{_fingerprint(site)}"
    if not made.is_dir():
        _make(site, made)
    return made


def made_text(path: str, size_bytes: int) -> bytes:
    """Make text of a length: lines of 63 hexadecimal digits, the same wherever it is made.

    Line n is the SHA-256 of `PATH:n`, its last digit replaced by the line's end.
    """
    lines = (
        hashlib.sha256(f"{path}:{number}".encode()).hexdigest()[:63]
        for number in range(size_bytes // 64 + 1)
    )
    return "\n".join(lines).encode().ljust(size_bytes, b"\n")[:size_bytes]


def _make(site: Site, made: Path) -> None:
    scratch = Path(tempfile.mkdtemp(dir=made.parent, prefix="new-"))
    try:
        literal = site.folder / LITERAL
        if literal.is_dir():
            shutil.copytree(literal, scratch, dirs_exist_ok=True)
        for path, file in site.files.items():
            target = scratch / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_content(path, file))
        for made_path in [scratch, *scratch.rglob("*")]:  # whatever our own umask is
            made_path.chmod(0o755 if made_path.is_dir() else 0o644)
        try:
            scratch.rename(made)
        except OSError:
            if not made.is_dir():  # else somebody else was quicker with the same content
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _content(path: str, file: MadeFile) -> bytes:
    return file.text.encode() if file.text is not None else made_text(path, file.size_bytes or 0)


def _fingerprint(site: Site) -> str:
    digest = hashlib.sha256(site.model_dump_json(exclude={"folder"}).encode())
    for folder, folders, names in os.walk(site.folder):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            digest.update(f"{path.relative_to(site.folder)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
