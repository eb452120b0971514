"""Names in the kernel's files are of any bytes."""

import re
from pathlib import Path

import pytest

import webdyno
from webdyno.core.kernel import Mount, mounts

READ_AS_TEXT = re.compile(
    r'["/](?:cgroup|cmdline|comm|dev|environ|maps|mountinfo|mounts|route|stat|status|unix)"\)*'
    r"\.(?:read_text|open)\("
)


def test_names_of_mounts_begin_no_line_or_field_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = b" /a tmpfs rw,x 0 0\n\xffs\xc2\x85 /b\\040c\x0ccgroup2\x0crw\x1c fuse.x rw 0 0\n"
    monkeypatch.setattr(Path, "read_bytes", lambda _: listed)
    assert mounts() == [
        Mount("/a", "tmpfs", ["rw", "x"]),
        Mount("/b\\040c\x0ccgroup2\x0crw\x1c", "fuse.x", ["rw"]),
    ]


def test_files_with_names_in_them_are_read_as_bytes() -> None:
    files = [*Path(webdyno.__file__).parent.rglob("*.py")]
    reading = [str(file) for file in files if READ_AS_TEXT.search(file.read_text("utf-8"))]
    assert not reading, "read it with kernel_lines of core/kernel.py"
