"""Whoever has something measured: how they hear of it and are asked, and what they agreed to."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from webdyno.core.command import keyword_of, spelled
from webdyno.core.run import RunHead
from webdyno.measure.point import Progress

logger = logging.getLogger(__name__)


class AskPerson(Protocol):
    """Asks a person something."""

    def __call__(self, question: str, *, usual: bool) -> bool:
        """Give the answer; `usual` is what a bare return key means."""


@dataclass(frozen=True)
class Caller:
    """Whoever has something measured."""

    notify: Callable[[str], None]
    """Says what is no result."""
    progress: Callable[[RunHead], AbstractContextManager[Progress]]
    """Gives what shows the progress of a run."""
    asks: AskPerson | None = None
    """None where nobody is there to answer."""
    yes: bool = False
    """Whether all that would be asked is agreed to beforehand."""
    loads_other_machines: bool = False
    """Whether configurations may pass requests on to other machines, which are loaded then."""
    target_is_mine: bool = False
    """Whether who calls vouches for the machines that `url:` names, which are loaded then."""
    allows_commands: bool = True
    """Whether what is named may run commands of its author's; not where somebody else names it."""
    cluster: str | None = None
    """The head of the cluster that has the hosts; else the environment names it."""
    quiet: bool = False
    """Whether only what goes wrong is reported."""
    by_keyword: bool = False
    """Whether `yes` and the like are given as keywords of Python, not as flags."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody is there to answer."""
        return self.asks is None

    def ask(self, question: str, *, usual: bool) -> bool:
        """Ask; no is the answer where nobody is there to give one."""
        logger.debug("asks: %s", question)
        agreed = self.asks is not None and self.asks(question, usual=usual)
        logger.debug("the answer is %s", "yes" if agreed else "no")
        return agreed

    def named(self, flag: str) -> str:
        """Name a flag as this caller knows it: `--fail-if`, or `fail_if`."""
        return keyword_of(flag) if self.by_keyword else flag

    def spelled(self, flag: str, value: object = True) -> str:
        """Spell a flag as this caller gives it: `--site static`, or `site='static'`."""
        return spelled(flag, value, by_keyword=self.by_keyword)
