"""Logs that can't be read: what they are by a line of theirs, and what makes them readable."""

import re

_KINDS = (
    (
        rb"^(?:.{0,200} )?\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] \d+#\d+:",
        (
            "it looks like nginx's error log; the requests are in access_log, most often "
            "/var/log/nginx/access.log"
        ),
    ),
    (
        rb"^\[\w{3} \w{3} \d\d [\d:.]+ \d{4}\] \[",
        (
            "it looks like Apache's error log; the requests are in CustomLog, most often "
            "/var/log/apache2/access.log"
        ),
    ),
    (
        rb' - "[A-Z]+ \S+ HTTP/[\d.]+" \d{3}',
        (
            "it looks like uvicorn's log without times; `docker logs --timestamps` or %(asctime)s "
            "in its formatter adds them"
        ),
    ),
    (
        rb"^\d{4}-\d\d-\d\d[ \t]\d\d:\d\d:\d\d[ \t]\S+[ \t]",
        (
            "it looks like IIS, CloudFront or another W3C log without its line #Fields:; put that "
            "line first"
        ),
    ),
    (
        rb"Connect from \S+ to \S+|\] \S+ \S+ -?\d+/-?\d+/\+?-?\d+ \d+ \S\S ",
        "it looks like HAProxy's TCP log; `option httplog` makes it name requests",
    ),
    (
        rb"^[0-9a-f]{64} \S+ \[",
        "it looks like Amazon S3's access log, which isn't read; CloudFront's is",
    ),
    (
        rb"^(?:\x1b\[\d+m)*(?:GET|POST|HEAD|PUT|DELETE|PATCH) \S+ (?:\x1b\[\d+m)*(?:\d{3}|-)",
        "it looks like morgan's short format, which has no times; morgan('combined') has",
    ),
    (
        rb'Started (?:GET|POST|HEAD|PUT|DELETE|PATCH) "',
        "it looks like the log of Rails; the log of the server before it can be read",
    ),
)
_COMPILED = [(re.compile(pattern), told) for pattern, told in _KINDS]


def guess(line: bytes) -> str | None:
    """Say what a log is by a line that couldn't be read; None where that isn't known."""
    return next((told for pattern, told in _COMPILED if pattern.search(line)), None)
