"""`webdyno load`: the engine's own command line for people, `loadgen run`."""

import os

from webdyno.generator.loadgen import find_loadgen


def load(*arguments: str) -> None:
    """Put load on a URL; flags are the engine's, see `webdyno load --help`."""
    engine = find_loadgen()
    os.execv(engine, [str(engine), "run", *arguments])
