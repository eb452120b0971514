"""Starts a stack, prints its URL and processes as JSON, and waits: for tests that kill it."""

import json
import sys
import tempfile
import time
from pathlib import Path

from webdyno.config import Catalogue
from webdyno.host.this_machine import Testbed
from webdyno.servers.starting import open_stack

if __name__ == "__main__":
    catalogue = Catalogue.load()
    stack, site = catalogue.stack(sys.argv[1]), catalogue.site(sys.argv[2])
    with (
        tempfile.TemporaryDirectory() as folder,
        open_stack(stack, {}, site, folder=Path(folder), testbed=Testbed()) as running,
    ):
        said = {
            "url": running.url,
            "pids": running.pids(),
            "wardens": running.wardens(),
            "group": str(running.group.path) if running.group else None,
        }
        print(json.dumps(said), flush=True)  # noqa: T201
        time.sleep(60)
