"""What a URL says of the side that was measured."""

import re
from typing import Any

_URL = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[^/:\s\[\]]{1,255})"
    r"(?::(?P<port>\d{1,5})(?!\d))?(?P<path>/\S*)?"
)


def url_figures(url: str | None) -> dict[str, Any]:
    """Give host, port and path under the names of Output's attributes, as far as it says them."""
    found = _URL.match((url or "").strip("\"'`"))
    if not found:
        return {}
    said = {name: found[name].strip("[]") for name in ("host", "path") if found[name]}
    port = found["port"] or ("443" if found["scheme"] == "https" else None)
    return said | ({"port": int(port)} if port else {})
