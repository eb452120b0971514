"""Reads the catalogue and experiments: TOML becomes model types, mistakes become messages."""

from webdyno.definitions.catalogue import Catalogue
from webdyno.definitions.compatibility import check_fit, check_knob, knobs_of, read_knobs
from webdyno.definitions.experiment import CommandLine, Draft, read_experiment
from webdyno.definitions.override import Override, factors, settings

__all__ = [
    "Catalogue",
    "CommandLine",
    "Draft",
    "Override",
    "check_fit",
    "check_knob",
    "factors",
    "knobs_of",
    "read_experiment",
    "read_knobs",
    "settings",
]
