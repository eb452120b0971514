"""A user's own systems as arms: commands, revisions, configurations, what runs already.

Whatever a user writes for an arm's `stack`, `cmd:./server` or `rev:main`, is turned into a part of
a catalogue before anything is measured. What comes after that needn't know of it.
"""

from webdyno.own.arms import OWN_SITE, is_own, is_revision, resolve
from webdyno.own.passing import other_machines
from webdyno.own.project import Project, SpokenOfProject

__all__ = [
    "OWN_SITE",
    "Project",
    "SpokenOfProject",
    "is_own",
    "is_revision",
    "other_machines",
    "resolve",
]
