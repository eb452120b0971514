"""Variants of a test that `./dyno test --full` alone runs: others of the same test show as much."""

import pytest


def further(*values: object) -> object:
    """Give the values of such a variant, among those of a parametrised test."""
    return pytest.param(*values, marks=pytest.mark.long)
