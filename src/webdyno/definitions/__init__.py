"""Reads the catalogue and experiments: TOML becomes model types, mistakes become messages."""

from webdyno.definitions.catalogue import Catalogue

__all__ = ["Catalogue"]
