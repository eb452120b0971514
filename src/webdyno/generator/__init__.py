"""Load generators: one interface, several programs behind it."""

from webdyno.generator.interface import Expectation, Generator, GeneratorError, LoadOrder, Request
from webdyno.generator.loadgen import Loadgen, find_loadgen, loadgen_version
from webdyno.generator.registry import (
    check_generator,
    generator_needs,
    generator_version,
    new_generator,
)

__all__ = [
    "Expectation",
    "Generator",
    "GeneratorError",
    "LoadOrder",
    "Loadgen",
    "Request",
    "check_generator",
    "find_loadgen",
    "generator_needs",
    "generator_version",
    "loadgen_version",
    "new_generator",
]
