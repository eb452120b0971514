"""Pages of HTML that servers sent."""

from contextlib import suppress
from html.parser import HTMLParser


class PageParser(HTMLParser):
    """Reads a page, up to what Python's parser can't read, such as `<![x[`."""

    def feed(self, data: str) -> None:
        with suppress(AssertionError):
            super().feed(data)
