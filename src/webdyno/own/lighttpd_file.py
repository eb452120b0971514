"""Moves a configuration of lighttpd: what it sets is set anew at its end."""

import re
from pathlib import Path

from webdyno.own.moved import FOLDER, HOST, PORT, Moved, shown

LEFT_OUT = re.compile(r"(?m)^[ \t]*server\.(username|groupname|chroot|pid-file)[ \t]*:?=.*$")
SOCKETS = re.compile(r'(?m)^[ \t]*\$SERVER\["socket"\]')


def moved(file: Path, root: Path | None) -> Moved:
    """Read and move a configuration; what it includes is included from where it is."""
    text = file.read_text(encoding="utf-8", errors="replace")
    changes = [f"left out: {found[0].strip()}" for found in LEFT_OUT.finditer(text)]
    text = LEFT_OUT.sub("", text)
    text = re.sub(r'(?m)^(\s*include(?:_shell)?\s+")(?!/)', rf"\g<1>{file.parent}/", text)
    anew = {
        "server.bind": f'"{HOST}"',
        "server.port": PORT,
        "server.errorlog": '"/dev/stderr"',
        "server.upload-dirs": f'( "{FOLDER}/temp" )',
        **(
            {"accesslog.filename": f'"{FOLDER}/access.log"'} if "accesslog.filename" in text else {}
        ),
        **({"server.document-root": f'"{root}"'} if root else {}),
    }
    lines = [f"{key} := {value}" for key, value in anew.items()]
    changes += [f"{shown(f'{key} = {value}')}" for key, value in anew.items()]
    if SOCKETS.search(text):
        changes.append('kept: $SERVER["socket"], which may listen on other ports as well')
    config = "{{ server.folder }}/lighttpd.conf"
    return Moved(
        name="lighttpd.conf",
        text="\n".join([text, *lines, ""]),
        changes=changes,
        start=["{{ needs.binary }}", "-D", "-f", config],
        check=["{{ needs.binary }}", "-tt", "-f", config],
        folders=["temp"],
    )
