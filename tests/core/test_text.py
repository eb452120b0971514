"""Texts that others wrote."""

import pytest

from webdyno.core.text import split_url
from webdyno.launch.first_try import PageResponse
from webdyno.systems.kinds import NamedSystem, variant_names
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.logins import login_by_form
from webdyno.systems.layouts.routes import links_of

NO_URLS = ("http://[::1", "//[x/", "http://a\u2100b/")
"""The last one has a character that becomes `a/c` when it is normalised."""


@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_url_has_no_parts(url: str) -> None:
    assert not any(split_url(url))
    assert not any(split_url(url, "http://here/"))
    assert links_of(f'<a href="{url}">x</a><a href="/b">y</a>'.encode(), "/") == ["/b"]
    assert variant_names([NamedSystem("", f"url:{url}"), NamedSystem("", "nginx")])[1] == "nginx"
    redirect = PageResponse("/", 302, 0, 0.1, "text/html", url, "", b"")
    assert not redirect.needs_login
    assert url in redirect.why_not
    form = f'<form method="post" action="{url}"><input type="password" name="p"></form>'
    assert login_by_form(form.encode(), "/login", FoundApp("x", "x"))
