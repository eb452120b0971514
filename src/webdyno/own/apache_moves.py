"""What becomes of single directives of Apache: what they write, run and contact."""

import os
import re
from pathlib import Path

from webdyno.model.origin import Line
from webdyno.own.apache_lines import ApacheLines
from webdyno.own.moved import FOLDER, why_no_ciphers

NO_OTHER_USER = "an ordinary user has no other"
OUTSIDE = "it would ask other machines"
LEFT_OUT = {
    "user": NO_OTHER_USER,
    "group": NO_OTHER_USER,
    "suexecusergroup": NO_OTHER_USER,
    "assignuserid": NO_OTHER_USER,
    "chrootdir": "root alone may change it",
    "pidfile": "it is in the run's folder",
    "scoreboardfile": "it isn't needed",
    "coredumpdirectory": "it isn't needed",
    "defaultruntimedir": "it is the run's folder",
    "scriptsock": "it is in the run's folder",
    "mutex": "its files are in the run's folder",
    "sslpassphrasedialog": "nobody is there to ask for a passphrase",
    "sslusestapling": OUTSIDE,
    "mdomain": OUTSIDE,
    "mdstapling": OUTSIDE,
    "heartbeataddress": "it would send to other machines",
}
FILES = {
    "customlog": "access.log",
    "transferlog": "access.log",
    "globallog": "access.log",
    "forensiclog": "forensic.log",
    "scriptlog": "script.log",
    "davlockdb": "dav-lock",
    "mdstoredir": "md",
    "wsgisocketprefix": "wsgi",
}
"""What is written, and the name that it has in the run's folder."""
FOLDERS = {"cacheroot": "cache"}
"""Folders that have to be there."""
CACHES = {
    *("sslsessioncache", "sslstaplingcache", "authncachesocache", "cachesocache"),
    "authdigestshmemfile",
}
PATH_AT = {
    "documentroot": 0,
    "alias": 1,
    "scriptalias": 1,
    "authuserfile": 0,
    "authgroupfile": 0,
    "sslcertificatefile": 0,
    "sslcertificatekeyfile": 0,
    "sslcertificatechainfile": 0,
    "sslcacertificatefile": 0,
}
"""Directives with paths that may be relative, and which of their words that is."""
CIPHERS = {"sslciphersuite", "sslproxyciphersuite"}
TYPES, MAGIC = Path("/etc/mime.types"), Path("/etc/apache2/magic")

_WORD = re.compile(r'("(?:[^"\\]|\\.)*"|\S+)\s*')
_SECTION = re.compile(r'(\s*<Directory\s+)"?([^"~>]+?)"?(\s*>\s*)$', re.IGNORECASE)


def first_word(words: str) -> tuple[str, str]:
    """Split the first word off, which may be in quotes."""
    found = _WORD.match(words)
    return (found[1], words[found.end() :]) if found else (words, "")


def why_left_out(lower: str, words: str) -> str | None:
    """Say why a directive is left out; None where it stays."""
    if lower in CIPHERS and (why := why_no_ciphers(words)):
        return why
    return None if words.lower() == "off" else LEFT_OUT.get(lower)


def program_of(lower: str, words: str) -> str | None:
    """Name the program that a directive has the server run, or the code that it loads."""
    if lower == "rewritemap" and (found := re.search(r"\bprg:(\S.*)", words)):
        return found[1].strip('"')
    if lower == "extfilterdefine" and (found := re.search(r'\bcmd=("[^"]*"|\S+)', words)):
        return found[1].strip('"')
    if lower == "loadfile":
        return first_word(words)[0].strip('"')
    return None


def moved(lower: str, name: str, words: str, reader: ApacheLines, folders: list[str]) -> str | None:
    """Give a directive with what it names moved; None where nothing of it changes."""
    if lower == "errorlog":
        return f"{name} /dev/stderr"
    if lower in FILES:
        _, rest = first_word(words)
        return f'{name} "{FOLDER}/{FILES[lower]}" {rest}'.rstrip()
    if lower in FOLDERS:
        folders.append(FOLDERS[lower])
        return f'{name} "{FOLDER}/{FOLDERS[lower]}"'
    if lower in CACHES:
        return f"{name} " + re.sub(r"(:|^)/[^\"(\s]+", rf"\1{FOLDER}/{lower}", words)
    if lower == "typesconfig":
        return _with_file(name, words, reader.found(words.strip('"')) or TYPES)
    if lower == "mimemagicfile":
        file = reader.found(words.strip('"')) or (MAGIC if MAGIC.is_file() else Path(os.devnull))
        return _with_file(name, words, file)
    if lower in PATH_AT:
        return f"{name} {_with_path(words, PATH_AT[lower], reader)}"
    return None


def _with_file(name: str, words: str, file: Path) -> str | None:
    return None if str(file) == words.strip('"') else f'{name} "{file}"'


def moved_section(text: str, reader: ApacheLines) -> str:
    """Give a `<Directory>` with a whole path."""
    found = _SECTION.match(text)
    if not found or found[2].startswith("/") or "*" in found[2]:
        return text
    return f'{found[1]}"{_whole(found[2], reader)}"{found[3]}'


def refuse_missing_includes(lines: list[Line], reader: ApacheLines) -> None:
    """Raise Mistake for an include of what isn't there, in what is measured."""
    for line in lines:
        if line.origin in reader.missing:
            raise reader.missing[line.origin]


def _with_path(words: str, at: int, reader: ApacheLines) -> str:
    """Give words whose path begins at the root."""
    found = list(_WORD.finditer(words))
    if len(found) <= at:
        return words
    path = found[at][1].strip('"')
    if not path or path.startswith(("/", "$", "@")):
        return words
    start, end = found[at].span(1)
    return f'{words[:start]}"{_whole(path, reader)}"{words[end:]}'


def _whole(path: str, reader: ApacheLines) -> Path:
    """Give what a relative path means: what is there, else beside where webdyno is called."""
    begin = reader.wanted.folder or reader.wanted.file.parent
    return reader.found(path) or begin / path
