"""Lines of logs as requests, whichever program wrote them."""

from webdyno.workload.formats.access import Access, NoRequest
from webdyno.workload.formats.common import read_common
from webdyno.workload.formats.json_lines import read_json
from webdyno.workload.formats.servers import W3c, read_haproxy, read_load_balancer, read_uvicorn

__all__ = ["READ", "Access", "Lines", "NoRequest", "read_line"]

READ = (
    "common and combined format, JSON of nginx, Caddy, Traefik and Envoy, HAProxy, IIS, CloudFront,"
    " Amazon's load balancers, HAR"
)


class Lines:
    """Reads the lines of one log: some formats name their fields as they go."""

    def __init__(self) -> None:
        """Begin a log."""
        self._w3c = W3c()

    def read(self, line: bytes) -> Access | None:
        """Give a line's request; None for a comment. Raise Unreadable."""
        if line.startswith(b"#"):
            self._w3c.comment(line)
            return None
        return self._w3c.read(line) if self._w3c.fields else read_line(line)


def read_line(line: bytes) -> Access:
    """Read a line of a format that names no fields; raise Unreadable."""
    if line.startswith(b"{"):
        return read_json(line, b"", read_line)
    for read in (read_common, read_haproxy, read_load_balancer, read_uvicorn):
        if access := read(line):
            return access
    begins = line.find(b"{")
    if begins > 0 and line.rstrip().endswith(b"}"):
        return read_json(line[begins:], line[:begins], read_line)
    raise NoRequest("is in none of the formats that are read")
