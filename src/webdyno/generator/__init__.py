"""Load generators: one interface, several programs behind it."""

from webdyno.generator.interface import (
    Expectation,
    Generator,
    GeneratorError,
    LoadOrder,
    Program,
    Request,
)
from webdyno.generator.loadgen import Loadgen, find_loadgen, loadgen_version
from webdyno.generator.registry import generator_fault, program, programs

__all__ = [
    "Expectation",
    "Generator",
    "GeneratorError",
    "LoadOrder",
    "Loadgen",
    "Program",
    "Request",
    "find_loadgen",
    "generator_fault",
    "loadgen_version",
    "program",
    "programs",
]
