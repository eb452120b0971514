"""Renders, starts, waits for and stops stacks."""

from webdyno.stack.layout import Placement
from webdyno.stack.needs import install_packages, missing_packages
from webdyno.stack.running import RunningStack
from webdyno.stack.service import StackDied
from webdyno.stack.starting import ask_versions, start_stack

__all__ = [
    "Placement",
    "RunningStack",
    "StackDied",
    "ask_versions",
    "install_packages",
    "missing_packages",
    "start_stack",
]
