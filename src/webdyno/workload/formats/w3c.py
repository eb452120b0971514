"""W3C's extended format, whose comments name the fields: IIS and CloudFront."""

from urllib.parse import unquote_to_bytes

from webdyno.workload.formats import took
from webdyno.workload.formats.access import AT_EDGE, CASE_BLIND, Access, Unreadable, client
from webdyno.workload.formats.times import moment_of

_NEEDED = ("date", "time", "cs-method", "cs-uri-stem", "sc-status")
_HIT = "Hit"
_MS = 1e-3


class W3c:
    """Reads the lines that follow a `#Fields:` line."""

    def __init__(self) -> None:
        """Begin without fields: no line is read before they are named."""
        self.fields: list[str] = []
        self._iis = False
        self._tabs = False

    def comment(self, line: bytes) -> None:
        """Take a line that begins with #: it may name the fields of those that follow."""
        if line.startswith(b"#Software:"):
            self._iis = b"Internet Information" in line
        if line.startswith(b"#Fields:"):
            self.fields = line[len(b"#Fields:") :].decode(errors="replace").split()
            self._tabs = "x-edge-location" in self.fields

    def read(self, line: bytes) -> Access:
        """Read a line; raise Unreadable."""
        lacking = [name for name in _NEEDED if name not in self.fields]
        if lacking:
            raise Unreadable(f"follows a line #Fields: that doesn't name {', '.join(lacking)}")
        text = line.decode(errors="surrogateescape").rstrip("\r\n")
        values = text.split("\t" if self._tabs else " ")
        if len(values) != len(self.fields):
            raise Unreadable(f"has {len(values)} values, and #Fields: names {len(self.fields)}")
        found = dict(zip(self.fields, values, strict=True))
        try:
            return self._access(found)
        except (ValueError, OverflowError):
            raise Unreadable("has a wrong time, status or length") from None

    def _access(self, found: dict[str, str]) -> Access:
        query = found.get("cs-uri-query", "-")
        target = found["cs-uri-stem"] + ("" if query == "-" else f"?{query}")
        remarks = [AT_EDGE] * (found.get("x-edge-result-type") == _HIT) + [CASE_BLIND] * self._iis
        listed = _bytes(found.get("x-forwarded-for", found.get("X-Forwarded-For", "")))
        address, by_proxy = client(
            _bytes(found.get("c-ip", "")), unquote_to_bytes(listed.replace(b"+", b" "))
        )
        return Access(
            moment_of(f"{found['date']}T{found['time']}"),
            address,
            _bytes(found.get("cs(User-Agent)", "")),
            _bytes(found["cs-method"]),
            _bytes(target),
            int(found["sc-status"]),
            int(found.get("sc-bytes", "0").replace("-", "0")),
            None,
            self._took_s(found),
            (*remarks, *by_proxy),
        )

    def _took_s(self, found: dict[str, str]) -> float | None:
        """CloudFront has seconds, of which the first byte's are nearest to the server's; IIS ms."""
        told = found.get("time-to-first-byte") or found.get("time-taken")
        return took.of_number(told, 1.0 if self._tabs else _MS)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
