"""Reads the catalogue and experiments: TOML becomes model types, mistakes become messages."""

from webdyno.config.catalogue import Catalogue
from webdyno.config.checks import check_fit, check_setting, read_settings, settings_of
from webdyno.config.experiment import (
    CommandLine,
    Draft,
    Override,
    factors,
    read_experiment,
    read_overrides,
    time_limit,
    variant_of,
)

__all__ = [
    "Catalogue",
    "CommandLine",
    "Draft",
    "Override",
    "check_fit",
    "check_setting",
    "factors",
    "read_experiment",
    "read_overrides",
    "read_settings",
    "settings_of",
    "time_limit",
    "variant_of",
]
