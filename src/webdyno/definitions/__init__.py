"""Reads the catalogue and experiments: TOML becomes model types, mistakes become messages."""

from webdyno.definitions.catalogue import Catalogue
from webdyno.definitions.fit import check_fit, check_knob, read_knobs

__all__ = ["Catalogue", "check_fit", "check_knob", "read_knobs"]
