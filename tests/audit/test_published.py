"""Five published comparisons: the audit finds what their own figures give away.

Only figures are repeated here, in the form that the tools give them.
"""

from functools import partial

import pytest

from audit.test_variants import RATES, SPEEDS, table
from audit.texts import ab, audited, found, recorded, serious

robots = partial(ab, path="/robots.txt", document=204, concurrency=200, requests=1000, host="HOST")
NGINX_ROBOTS = robots(
    server="nginx/0.5.35",
    took_s=1.503728,
    rate=665.01,
    transfer=321.20,
    total=494984,
    body=204408,
    connect=(17, 99, 174),
    p99=1162,
)
APACHE_ROBOTS = robots(
    server="Apache/2.2.3",
    took_s=8.891118,
    rate=112.47,
    transfer=55.34,
    total=504510,
    body=205020,
    connect=(0, 8, 2999),
    p99=6005,
)
SWEEP = (
    "httperf \u2013timeout=5 \u2013client=0/1 \u2013server=HOST \u2013port=80 "
    "\u2013uri=/robots.txt \u2013rate=X \u2013send-buffer=4096 \u2013recv-buffer=16384 "
    "\u2013num-conns=5000 \u2013num-calls=10\n\n"
)


def test_a_deathmatch() -> None:
    text = f"{SWEEP}Nginx:\n\n{NGINX_ROBOTS}\nApache:\n\n{APACHE_ROBOTS}"
    assert serious(text) == {"few-requests-per-connection", "syn-retransmission"}
    few = found(text, "few-requests-per-connection")
    assert [each.what.rpartition(": ")[2] for each in few] == ["5 each", "5 each"]
    (syn,) = found(text, "syn-retransmission")
    assert "2,999 ms" in syn.what
    assert "after 3 s" in syn.what


def test_static_files_of_100_bytes() -> None:
    variants = (
        ("Apache/2.2.9", 2.646, 18898.08, 8333.56, 22577856, 49508),
        ("nginx/0.7.61", 1.928, 25937.28, 9826.54, 19397510, 49502),
    )
    text = "ab -k -c5 -t10000 http://<server>/100.html\n" + "".join(
        ab(
            server=server,
            path="/100.html",
            document=100,
            concurrency=5,
            requests=50_000,
            took_s=took_s,
            rate=rate,
            transfer=transfer,
            total=total,
            kept=kept,
            host="<server>",
            connect=(0, 0, 0),
        )
        for server, took_s, rate, transfer, total, kept in variants
    )
    assert serious(text) == set()
    first, second = found(text, "short-run")
    assert "ab -t stops at 50,000 requests" in first.what
    assert "1.93 s" in second.what


BLOGS = (
    ("Apache/2.2.22", 6573, 4.302335, 116.22, 805.14, 3547274, 3373898, 0, (96, 98, 107)),
    ("nginx", 25102, 2.592448, 192.87, 5045.81, 13395072, 13252730, 3, (97, 101, 109)),
    ("cloudflare-nginx", 21871, 1.344726, 371.82, 8103.51, 11158552, 10955146, 12, (5, 7, 11)),
)


def test_a_blog_from_a_page_cache() -> None:
    text = "WordPress, W3Total Cache\n\n" + "\n".join(
        'ab -c 100 -n 500 "http://******.test/*****"\n\n'
        + ab(
            server=server,
            path="*******",
            host="******.test",
            document=document,
            concurrency=100,
            requests=500,
            took_s=took_s,
            rate=rate,
            transfer=transfer,
            total=total,
            body=body,
            length_failures=failures,
            connect=connect,
        )
        for server, document, took_s, rate, transfer, total, body, failures, connect in BLOGS
    )
    assert serious(text) == {
        "different-documents",
        "few-requests-per-connection",
        "one-url-from-a-cache",
    }
    first, second = found(text, "different-documents")
    assert "6,573 bytes and nginx 25,102" in first.what
    assert "21,871" in second.what
    assert len(found(text, "few-requests-per-connection")) == 3
    assert {each.severity for each in found(text, "failed-by-length")} == {"note"}
    assert len(found(text, "thin-tail")) == 3


STATIC_KBS = (
    (3366.3, 795.18, 684.15, 693.69, 691.66),
    (77372.44, 73574.11, 75450.49, 72477.24, 73081.51),
)
STATIC_RPS = (
    (7419.4, 1752.68, 1509.9, 1530.84, 1530.06),
    (20451.82, 19447.76, 19943.76, 19157.64, 19317.36),
)
LEVELS = (10, 50, 100, 150, 200)


def by_level(columns: tuple[tuple[float, ...], tuple[float, ...]]) -> list[tuple[object, ...]]:
    return [(c, 10000, a, b) for c, a, b in zip(LEVELS, *columns, strict=True)]


COURSE = "".join(
    [
        "```\n13. ab -kc 100 -n 1000 http://ec2-test\n```\n",
        ab(
            server="Apache/2.4.39",
            path="/~a.bcd/public html/module8/testhtml.html",
            document=238,
            concurrency=100,
            requests=1000,
            took_s=6.817,
            rate=146.68,
            transfer=65.75,
            total=459040,
            body=234906,
            length_failures=13,
            non_2xx=987,
        ),
        table("Transfer rate [Kbytes/sec]:", by_level(STATIC_KBS), "kc\tn\tApache\tNginx"),
        table("Requests per second [#/sec]:", by_level(STATIC_RPS), "kc\tn\tApache\tNginx"),
        "74. <?php\n75. $loop=1000000;\n76. while($loop>0){\n",
        'echo "loop=10000000"\n83.    let loop=10000000;\n',
        ab(
            server="Apache/2.4.39",
            path="/~a.bcd/public_html/module8/testphp.php",
            document=236,
            concurrency=100,
            requests=25_000,
            took_s=4.808,
            rate=5199.38,
            transfer=2168.10,
            total=10_675_000,
            body=5_900_000,
            non_2xx=25_000,
        ),
        table("Transfer rate [Kbytes/sec]:", SPEEDS),
        table("Requests\tper\n----------\t-----", RATES),
        "second [#/sec]:\n",
    ]
)


def test_a_course_project() -> None:
    assert serious(COURSE) == {
        "copied-column",
        "different-documents",
        "different-loops",
        "error-page-column",
        "failed-by-length",
        "few-requests-per-connection",
        "non-2xx",
    }
    static, php = found(COURSE, "non-2xx")
    assert static.what.startswith("987 of 1")
    assert php.what.startswith("25,000 of 25")
    assert "Apache's 404 page for this path" in static.what
    assert "Apache's 404 page for this path" in php.what
    (copied,) = found(COURSE, "copied-column")
    assert "“node.js”" in copied.what
    (sizes,) = found(COURSE, "different-documents")
    assert "464 bytes per response for “Apache” and 3,874 for “Nginx”" in sizes.what
    assert "empty" in found(COURSE, "failed-by-length")[0].what
    assert "10 times" in found(COURSE, "different-loops")[0].what
    assert [each.what[:8] for each in found(COURSE, "error-page-column")] == [
        "“Apache”",
        "“php” ha",
    ]


HOME = (
    "SET: 105273.69 requests per second GET: 107526.88 requests per second INCR: 95238.10 requests "
    "per second LPUSH: 121987.80 requests per second LPOP: 108728.26 requests per second PING: "
    "133386.66 requests per second\n\nCPU: 100% httperf 57% redis-server 40% ruby1.9.1\n\n"
    "httperf --server=localhost --port=4567 --uri=/test --numconns=100 --num-calls=50\n\n"
    "Total: connections 100 requests 5000 replies 5000\n\n\thome\n"
    "Request rate\t48.5 req/s (20.6 ms/req)\nReply rate [replies/s]\tmin 16.2 avg 48.7 max 71.6\n"
    "Reply time [ms]\tresponse 20.6 transfer 0.0\n"
    "Reply status:\t1xx=0 2xx=5000 3xx=0 4xx=0 5xx=0\ntest-duration\t103.160 s\n"
)


def test_a_small_twitter_at_home() -> None:
    assert serious(HOME) == {"busy-client"}
    assert len(found(HOME, "only-throughput")) == 6
    assert found(HOME, "same-machine")
    assert found(HOME, "one-at-a-time")


@pytest.mark.parametrize("name", ["ab-clean.txt", "wrk-latency.txt"])
def test_prose_around_clean_runs_changes_nothing(name: str) -> None:
    prose = (
        "We ran it for 30 s with 32 connections; 100 % of responses were right.\n\n"
        "n\tvalue\n1\t2\n2\t3\n3\t4\n\nThe loop = 50 was in the test; a query cache was on.\n"
    )
    assert serious(prose + recorded(name) + prose) == set()
    assert audited(prose + recorded(name)).warnings
