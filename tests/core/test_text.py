"""Texts that others wrote."""

import pytest

from webdyno.core.text import split_url
from webdyno.launch.first_try import PageResponse
from webdyno.load.interface import ServerResponse
from webdyno.measure.checked_program import BrokenRule, ProgramResponse
from webdyno.systems.kinds import NamedSystem, variant_names
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.logins import login_by_form
from webdyno.systems.layouts.routes import links_of
from webdyno.systems.layouts.start_scripts import image_command

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


def test_json_that_is_too_deep_is_none() -> None:
    deep = b"[" * 999
    assert not PageResponse("/", 200, len(deep), 0.1, "application/json", "", "", deep).is_empty
    with pytest.raises(BrokenRule, match="should give a JSON object"):
        ProgramResponse("GET /", ServerResponse(200, body=deep * 99)).json()
    assert image_command(f"FROM x\nCMD {'[' * 99_999}")
