"""Load generators: one interface, several programs behind it."""

from webdyno.generator.interface import Expectation, Generator, GeneratorError, LoadOrder, Request
from webdyno.generator.loadgen import Loadgen, find_loadgen, loadgen_version

__all__ = [
    "Expectation",
    "Generator",
    "GeneratorError",
    "LoadOrder",
    "Loadgen",
    "Request",
    "find_loadgen",
    "loadgen_version",
]
