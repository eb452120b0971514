"""Load generators: one interface, several programs behind it."""

from webdyno.generator.interface import (
    AbortRule,
    Expectation,
    Generator,
    GeneratorError,
    LoadOrder,
    Program,
    SentRequest,
    Share,
    generator_fault,
    program,
    programs,
)
from webdyno.generator.loadgen import Loadgen, find_loadgen, loadgen_version
from webdyno.generator.sharing import joined, shares

__all__ = [
    "AbortRule",
    "Expectation",
    "Generator",
    "GeneratorError",
    "LoadOrder",
    "Loadgen",
    "Program",
    "SentRequest",
    "Share",
    "find_loadgen",
    "generator_fault",
    "joined",
    "loadgen_version",
    "program",
    "programs",
    "shares",
]
