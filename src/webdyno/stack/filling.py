"""Data of services behind a program, as its `setup` left it: made once, copied for each start.

Kept as long as this process lives, by all that it was made of; a killed one's are swept away with
its workspace.
"""

import atexit
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from webdyno.host.copies import take_back
from webdyno.host.users import hand_over, make_private
from webdyno.host.workspace import Workspace
from webdyno.stack.service import RunningService
from webdyno.stack.service_graph import Role


class FilledData:
    """Data folders of services, by the set-up that filled them."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Path]] = {}
        self._workspace: Workspace | None = None

    def of(self, roles: Sequence[Role]) -> Mapping[str, Path] | None:
        """Give the data of services, by role; None where such a set-up hasn't run yet."""
        return self._made.get(_key(roles))

    def keep(self, roles: Sequence[Role], services: Iterable[RunningService]) -> None:
        """Keep the data of services that a set-up filled, and that don't run."""
        if self._workspace is None:
            self._workspace = Workspace()
            atexit.register(self._workspace.remove)
        top = make_private(self._workspace.path / str(len(self._made)))
        kept = {}
        for service in services:
            data = service.home / (service.role.service.data or ".")
            kept[service.role.name] = folder = make_private(top / service.role.name)
            take_back(data, folder, service.testbed.user)
            hand_over(folder, service.testbed.user)
        self._made[_key(roles)] = kept


def _key(roles: Sequence[Role]) -> str:
    """Name a set-up by all that it depends on: services and settings; the program, if it fills."""
    said = [
        (role.name, role.service.model_dump_json(exclude={"folder"}), dict(role.settings))
        for role in roles
        if role.service.own is None or role.service.own.setup
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


FILLED = FilledData()
"""That of this process."""
