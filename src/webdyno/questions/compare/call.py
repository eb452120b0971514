"""A comparison, asked from Python."""

from typing import Unpack

from webdyno.interfaces.python.api import CallOptions, Systems
from webdyno.interfaces.python.result import Result


def compare(system: str, baseline: str, **options: Unpack[Systems]) -> Result:
    """Compare two systems: both serve the same site under the same load, and take turns.

    A system is a stack of the catalogue, or one of your own, such as `cmd:COMMAND` or `conf:FILE`.
    """
    given = CallOptions.of(options, Systems)
    return given.measure(given.arrange([baseline, system]))
