"""Real servers to put load on."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from webdyno.config import Catalogue
from webdyno.core.setting import SettingValue
from webdyno.host.this_machine import Testbed
from webdyno.servers.starting import open_stack


@contextmanager
def serving(
    stack: str, site: str, folders: pytest.TempPathFactory, **settings: SettingValue
) -> Iterator[str]:
    """Start a stack of the catalogue, give its URL, and stop it."""
    catalogue, folder = Catalogue.load(), folders.mktemp(stack)
    wanted, served = catalogue.stack(stack), catalogue.site(site)
    with open_stack(wanted, settings, served, folder=folder, testbed=Testbed()) as running:
        yield running.url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real nginx with the static site."""
    with serving("nginx", "static", tmp_path_factory) as found:
        yield found


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Redis with the keys that its benchmark asks for."""
    with serving("redis", "keys", tmp_path_factory) as found:
        yield found
