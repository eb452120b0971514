"""A local page: the runs of a folder, live while they go on, compared, exported, begun."""

from webdyno.serve.app import make_app
from webdyno.serve.starting import Starter

__all__ = ["Starter", "make_app"]
