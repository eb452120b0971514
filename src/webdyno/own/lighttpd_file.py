"""Moves a configuration of lighttpd: what it sets is set anew at its end."""

import re

from webdyno.own.moved import FOLDER, HOST, KEY, KEY_AND_CERTIFICATE, PORT, Moved, Wanted, shown

LEFT_OUT = re.compile(r"(?m)^[ \t]*server\.(username|groupname|chroot|pid-file)[ \t]*:?=.*$")
SOCKET = re.compile(r'(?m)^([ \t]*\$SERVER\["socket"\]\s*==\s*)"([^"]*)"([^{]*\{[^}]*\})')
"""With what holds for that socket."""
TLS = re.compile(r'ssl\.engine\s*:?=\s*"enable"')
KEYS = re.compile(r'(?m)^([ \t]*ssl\.(pemfile|privkey)[ \t]*:?=[ \t]*)"([^"]*)"')
OURS_INSTEAD = {"pemfile": KEY_AND_CERTIFICATE, "privkey": KEY}


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration; what it includes is included from where it is."""
    file, root = wanted.file, wanted.root
    text = file.read_text(encoding="utf-8", errors="replace")
    changes = [f"left out: {found[0].strip()}" for found in LEFT_OUT.finditer(text)]
    text = LEFT_OUT.sub("", text)
    text = re.sub(r'(?m)^(\s*include(?:_shell)?\s+")(?!/)', rf"\g<1>{file.parent}/", text)
    text = _at_the_port(wanted, text, changes)
    text = _with_readable_keys(wanted, text, changes)
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
    config = "{{ server.folder }}/lighttpd.conf"
    return Moved(
        name="lighttpd.conf",
        text="\n".join([text, *lines, ""]),
        changes=changes,
        start=["{{ needs.binary }}", "-D", "-f", config],
        check=["{{ needs.binary }}", "-tt", "-f", config],
        folders=["temp"],
    )


def _at_the_port(wanted: Wanted, text: str, changes: list[str]) -> str:
    """Move the sockets beside the server's own: the one that is measured, if it is one of them."""
    own_is_secure = bool(TLS.search(SOCKET.sub("", text)))
    fitting = [
        found[2]
        for found in SOCKET.finditer(text)
        if bool(TLS.search(found[3])) == wanted.is_secure and _port(found[2])
    ]
    measured = None
    if own_is_secure != wanted.is_secure:
        port = wanted.measured([_port(it) for it in fitting])
        measured = next(it for it in fitting if _port(it) == port)

    def new_socket(found: re.Match[str]) -> str:
        address = f"{HOST}:{PORT}" if found[2] == measured else f"{FOLDER}/{_port(found[2])}.sock"
        new = f'{found[1]}"{address}"'
        changes.append(f'{shown(new).strip()}, not "{found[2]}"')
        return f"{new}{found[3]}"

    return SOCKET.sub(new_socket, text)


def _with_readable_keys(wanted: Wanted, text: str, changes: list[str]) -> str:
    """Put the run's own certificate in the place of one that the server couldn't read."""
    if all(wanted.may_read(found[3]) for found in KEYS.finditer(text)):
        return text

    def new_path(found: re.Match[str]) -> str:
        new = f'{found[1]}"{OURS_INSTEAD[found[2]]}"'
        changes.append(wanted.unreadable(new.strip(), found[3]))
        return new

    return KEYS.sub(new_path, text)


def _port(address: str) -> int:
    """Give the port of `:443`, `0.0.0.0:443` or `[::]:443`; 0 where there is none."""
    last = address.rpartition(":")[2]
    return int(last) if last.isdecimal() else 0
