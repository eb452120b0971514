"""A local page: the runs of a folder, live while they go on, compared, exported, begun."""

from webdyno.ui.app import make_app
from webdyno.ui.starting import Starter

__all__ = ["Starter", "make_app"]
