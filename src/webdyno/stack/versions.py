"""What version a service has: what it says itself, and its modules; what its lock file pins."""

from collections.abc import Mapping, Sequence
from typing import Any

import regex

from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.model.errors import UserError
from webdyno.model.service import Service, Version
from webdyno.model.setting import SettingValue
from webdyno.stack.commands import version_output
from webdyno.stack.lock_files import locked_versions
from webdyno.stack.render import without_empty

PATTERN_WITHIN_S = 5.0
UNKNOWN = "unknown"


def told_version(
    service: Service,
    settings: Mapping[str, SettingValue],
    filled: Mapping[str, Any],
    testbed: Testbed,
    workspace: Workspace,
) -> tuple[str, str]:
    """Give a service's version, with those of what is inside, and all that its programs said.

    `filled` are its commands, filled in. Without a version of its own it has that of the first
    package of its lock file.
    """
    locked = dict(locked_versions(service, settings))
    match service.version:
        case Version() as how:
            main, said = _ask(service, how, filled["version"], testbed, workspace)
        case None if locked:
            main, said = locked.pop(next(iter(locked))), ""
        case known:
            main, said = known or UNKNOWN, ""
    modules = {
        name: _ask(service, how, filled["modules"][name], testbed, workspace)
        for name, how in service.modules.items()
    }
    inside = {name: told for name, told in modules.items() if told[1]}
    versions = {**locked, **{name: version for name, (version, _) in inside.items()}}
    texts = filter(None, [said, *(text for _, text in inside.values())])
    named = [f"{name} {version}" for name, version in versions.items()]
    return ", ".join([main, *named]), "\n".join(texts)


def _ask(
    service: Service,
    version: Version,
    command: Sequence[str],
    testbed: Testbed,
    workspace: Workspace,
) -> tuple[str, str]:
    """Give a version, "unknown" if it can't be made out, and all that the program said."""
    words = without_empty(command)
    said = version_output(words, testbed, workspace) if words else ""
    try:
        match = regex.search(version.pattern, said, timeout=PATTERN_WITHIN_S)
    except TimeoutError:
        raise UserError(f"{service.where}: pattern {version.pattern!r} takes for ever") from None
    return (match[1] if match and match[1] else UNKNOWN), said
