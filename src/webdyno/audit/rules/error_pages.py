"""How long the error pages are that servers come with: nginx's and Apache's own templates."""

from collections.abc import Iterator

from webdyno.readers.output import Output

_NGINX_REASONS = {
    404: "Not Found",
    403: "Forbidden",
    400: "Bad Request",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Temporarily Unavailable",
    504: "Gateway Time-out",
}

_NGINX = (
    "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n"
    "<center><h1>{title}</h1></center>\r\n<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
)
_APACHE_NOT_FOUND = (
    '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n'
    "<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n"
    "<p>The requested URL{path} was not found on this server.</p>\n</body></html>\n"
)


def error_page(output: Output) -> str | None:
    """Name the error page that is exactly as long as the document which was measured."""
    if output.document_bytes is None or not output.server:
        return None
    pages = _nginx(output.server) if output.server.startswith("nginx") else _apache(output)
    names = [name for name, length in pages if length == output.document_bytes]
    return " or ".join(names) or None


def _nginx(server: str) -> Iterator[tuple[str, int]]:
    for status, reason in _NGINX_REASONS.items():
        page = _NGINX.format(title=f"{status} {reason}", server=server)
        yield f"nginx's {status} page", len(page)


def _apache(output: Output) -> Iterator[tuple[str, int]]:
    if not output.server or not output.server.startswith("Apache"):
        return
    # Up to 2.4.41 it names the path, without the query.
    for path in ("", f" {(output.path or '').partition('?')[0]}"):
        yield "Apache's 404 page for this path", len(_APACHE_NOT_FOUND.format(path=path))
