"""Logs of many programs, as they lie about: the same traffic, whoever wrote it down."""

import json
from pathlib import Path

import numpy as np
import pytest

from traffic.made import line, read
from webdyno.core.errors import UserError
from webdyno.formats.har import HarResponse, sent_bytes
from webdyno.traffic import Manner, facts_of, traffic_of
from webdyno.traffic.access import NoRequest
from webdyno.traffic.lines import read_line

AT = "22/Nov/2026:10:15:03 +0000"
AT_S = 1_795_342_503.0
AGENT = "Mozilla/5.0 (X11; Linux x86_64)"
COMBINED = f'192.0.2.7 - - [{AT}] "GET /a?b=c HTTP/1.1" 200 1830 "-" "{AGENT}"'
CADDY = {
    "level": "info",
    "ts": AT_S,
    "logger": "http.log.access.log0",
    "request": {
        "remote_ip": "192.0.2.7",
        "client_ip": "192.0.2.7",
        "method": "GET",
        "uri": "/a?b=c",
        "headers": {"User-Agent": [AGENT]},
    },
    "duration": 0.012,
    "size": 1830,
    "status": 200,
}
TRAEFIK = {
    "ClientAddr": "192.0.2.7:58520",
    "ClientHost": "192.0.2.7",
    "DownstreamContentSize": 1830,
    "DownstreamStatus": 200,
    "Duration": 99_180_000,
    "OriginDuration": 12_000_000,
    "RequestCount": 1,
    "RequestMethod": "GET",
    "RequestPath": "/a?b=c",
    "StartUTC": "2026-11-22T10:15:03.000000001Z",
    "time": "2026-11-22T10:15:04Z",
}
HAPROXY = (
    "192.0.2.7:54593 [22/Nov/2026:10:15:03.000] www~ app/app1 0/0/1/12/14 200 1830 - - ---- "
    '14/2/1/0/0 0/0 {shop.example.org|Mozilla/5.0} "GET /a?b=c HTTP/2.0"'
)
ALB = (
    "h2 2026-11-22T10:15:03.000000Z app/my-lb/50dc6c 192.0.2.7:2817 10.0.0.66:9000 0.000 0.012 "
    '0.000 200 200 0 1830 "GET https://shop.example.org:443/a?b=c HTTP/2.0" "Mozilla" TLS_AES '
    'TLSv1.3 arn:aws:x "Root=1" "shop.example.org"'
)
ENVOY = (
    '[2026-11-22T10:15:03.000Z] "GET /a?b=c HTTP/2" 200 - 0 1830 14 12 "192.0.2.7" "curl/8" '
    '"cc21d9b0" "shop" "tcp://10.0.2.1:80"'
)
ISTIO = ENVOY.replace(" 200 - 0", ' 200 - via_upstream - "-" 0')
IIS = (
    "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n"
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status "
    "time-taken\r\n"
    "2026-11-22 10:15:03 10.0.0.1 GET /a b=c 192.0.2.7 Mozilla/5.0+(X11) 200 12\r\n"
)
CLOUDFRONT_FIELDS = (
    "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs-uri-stem "
    "sc-status cs(User-Agent) cs-uri-query x-edge-result-type time-taken x-forwarded-for "
    "time-to-first-byte\n"
)
CLOUDFRONT = (
    "2026-11-22\t10:15:03\tFRA\t1830\t192.0.2.7\tGET\t/a\t200\tMoz%20illa\tb=c\t{}\t0.1\t-\t0.012\n"
)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "2026-11-22T10:15:03.131289846Z stdout F ",  # CRI, on a Kubernetes node
        "2026-11-22T10:15:03.131289846Z ",  # kubectl logs --timestamps, docker logs --timestamps
        "[pod/web-7d/nginx] ",  # kubectl logs --prefix
        "web-1    | ",  # docker compose logs
        "web-1  | 2026-11-22T10:15:03.131289846Z ",
        "Nov 22 10:15:03 web01 nginx: ",  # syslog
        "Nov  2 10:15:03 198.51.100.9 nginx[812]: ",
        "2026-11-22T10:15:03.123456+00:00 web01 nginx[812]: ",
        "<190>1 2026-11-22T10:15:03Z web01 nginx 812 - - ",
        "shop.example.org:443 ",  # Apache's vhost_combined
        "shop.example.org ",
        "\0" * 300,  # a machine that crashed
    ],
)
def test_whatever_stands_before_a_line_the_client_is_the_line_s_own(before: str) -> None:
    found = read_line(f"{before}{COMBINED}\n".encode())
    assert found.address == b"192.0.2.7"
    assert found.time_s == AT_S
    assert found[3:7] == (b"GET", b"/a?b=c", 200, 1830)


@pytest.mark.parametrize(
    ("head", "address"),
    [
        ("host.example - -", b"host.example"),
        ("web-1 | host.example - -", b"host.example"),
        ("2001:db8::1 - -", b"2001:db8::1"),
        ("::ffff:192.0.2.9 - john doe", b"::ffff:192.0.2.9"),
        ("[2001:db8::1]:4711 - -", b"2001:db8::1"),
        ("192.0.2.7, 10.0.0.1 - -", b"192.0.2.7"),
        ("- - -", b"-"),
        ("", b""),
        ("nothing known", b""),
        ("[] - -", b"[]"),
    ],
)
def test_a_client_is_an_address_or_stands_where_one_belongs(head: str, address: bytes) -> None:
    text = f'{head} [{AT}] "GET / HTTP/1.1" 200 1'
    assert read_line(text.encode()).address == address


TIMES = [
    AT_S,
    int(AT_S),
    AT_S * 1e3,
    int(AT_S * 1e9),
    "2026/11/22 10:15:03",
    "2026/11/22 10:15:03.000",
    "2026/11/22 10:15:03.000000000",
    "2026-11-22T10:15:03.000Z",
    "2026-11-22T11:15:03.000+0100",
    "2026-11-22T10:15:03.000000000Z",
    AT,
]


@pytest.mark.parametrize("time", TIMES)
def test_caddy_s_times_are_read_in_all_its_formats(time: object) -> None:
    assert read_line(json.dumps(CADDY | {"ts": time}).encode()).time_s == AT_S


@pytest.mark.parametrize("took", [0.012, "0.012", "0.012s", "12ms", "12000µs", 12_000_000])
def test_caddy_s_durations_are_read_in_all_its_formats(took: object) -> None:
    found = read_line(json.dumps(CADDY | {"duration": took}).encode())
    assert found.took_s == pytest.approx(0.012)


INGRESS = "406 0.099 [shop-web-80] [] 10.42.1.9:8080 1830 0.012 200 24a3"
INGRESS_TWICE = "406 0.099 [shop] [] 10.0.0.1:80, 10.0.0.2:80 0, 18 0.005, 0.007 502, 200 x"
MAIN_EXT = '"-" "shop.example" sn="s" rt=1.412 ua="10.0.1.7:90" us="200" ut="0.012" ul="18" cs=MISS'


def in_console_format(record: dict[str, object]) -> str:
    beyond = {key: value for key, value in record.items() if key not in {"ts", "logger", "level"}}
    return f"2026/11/22 10:15:03.000\tINFO\t{record['logger']}\thandled {json.dumps(beyond)}"


@pytest.mark.parametrize(
    "text",
    [
        f"{COMBINED} {INGRESS}",
        f"{COMBINED} {INGRESS_TWICE}",
        f"{COMBINED} {MAIN_EXT}",
        f'{COMBINED} rt=1.412 ut="0.005, 0.007"',
        f"{COMBINED} 0.099 0.012 .",
        f"{COMBINED} 12000",
        f'{COMBINED} 1 "shop@docker" "http://172.18.0.3:8080" 12ms',
        json.dumps(CADDY),
        in_console_format(CADDY),
        json.dumps(TRAEFIK),
        HAPROXY,
        f"Nov 22 10:15:03 lb1 haproxy[14389]: {HAPROXY}",
        ALB,
        ALB.removeprefix("h2 "),
        ENVOY,
        f"2026-11-22T10:15:04.131289846Z stdout F {ISTIO}",
        json.dumps(
            {"log": f"{COMBINED} 12000\n", "stream": "stdout", "time": "2026-11-22T10:15:09Z"}
        ),
        json.dumps({"log": json.dumps(CADDY), "stream": "stdout", "time": "2026-11-22T10:15:09Z"}),
        "web-1  | " + json.dumps(CADDY),
        json.dumps({"MESSAGE": f"{COMBINED} 12000", "__REALTIME_TIMESTAMP": "17"}),
        json.dumps(
            {
                "httpRequest": {
                    "requestMethod": "GET",
                    "requestUrl": "https://shop.example.org/a?b=c",
                    "status": 200,
                    "responseSize": "1830",
                    "remoteIp": "192.0.2.7",
                    "latency": "0.012s",
                },
                "timestamp": "2026-11-22T10:15:03Z",
            }
        ),
        json.dumps(
            {
                "start_time": "2026-11-22T10:15:03.000Z",
                "method": "GET",
                "path": "/a?b=c",
                "response_code": 200,
                "bytes_sent": 1830,
                "duration": 99,
                "upstream_service_time": "12",
                "x_forwarded_for": "192.0.2.7, 10.0.0.3",
                "downstream_remote_address": "10.0.0.3:5123",
            }
        ),
    ],
)
def test_every_program_s_line_says_the_same(text: str) -> None:
    found = read_line(text.encode())
    assert found.time_s == pytest.approx(AT_S)
    assert found.address == b"192.0.2.7"
    assert found.method == b"GET"
    assert found.target.removeprefix(b"https://shop.example.org").removeprefix(b":443") == b"/a?b=c"
    assert (found.status, found.body_bytes) == (200, 1830)
    assert found.took_s == pytest.approx(0.012)


@pytest.mark.parametrize(
    ("statuses", "sent"),
    [("- 200 200", " [Sent-to 10.0.0.5]"), ("HIT 502, 200 200", " [Sent-to web]"), ("200", "")],
)
def test_nginx_proxy_manager_s_formats_are_read(statuses: str, sent: str) -> None:
    text = (
        f'[{AT}] {statuses} - GET https shop.example.org "/a?b=c" [Client 192.0.2.7] '
        f'[Length 1830] [Gzip 3.2]{sent} "{AGENT}" "-"\n'
    )
    found = read_line(text.encode())
    assert (found.time_s, found.address, found.agent) == (AT_S, b"192.0.2.7", AGENT.encode())
    assert found[3:7] == (b"GET", b"/a?b=c", 200, 1830)


def test_what_became_a_web_socket_is_no_failure(tmp_path: Path) -> None:
    socket = ALB.replace("h2 ", "wss ").replace(" 200 200 ", " 101 101 ")
    assert read(tmp_path / "a.log", f"{ALB}\n{socket}\n").excluded == {
        "that became WebSockets or another protocol": 1
    }


@pytest.mark.parametrize(
    ("logged", "path"),
    [(r"/a\"b", "/a%22b"), (r"/a\x22b", "/a%22b"), (r"/a\\b", "/a%5Cb"), (r"/a\b", "/a%5Cb")],
)
def test_quotes_in_paths_are_as_they_were_asked_for(tmp_path: Path, logged: str, path: str) -> None:
    (asked,) = read(tmp_path / "a.log", line(logged)).asked
    assert asked.path == path


def test_uvicorn_s_line_is_read_where_docker_adds_the_time() -> None:
    text = 'INFO:     192.0.2.7:53478 - "GET /a HTTP/1.1" 200 OK'
    for before in ("2026-11-22T10:15:03.000Z ", "web-1  | 2026-11-22 10:15:03,000 "):
        found = read_line((before + text).encode())
        assert (found.time_s, found.address, found.target) == (AT_S, b"192.0.2.7", b"/a")
    with pytest.raises(NoRequest, match="no time"):
        read_line(text.encode())


def test_lines_of_caddy_s_errors_are_no_further_requests(tmp_path: Path) -> None:
    failed = CADDY | {"status": 502}
    error = failed | {"logger": "http.log.error.log0", "level": "error"}
    tls = {"level": "info", "ts": AT_S, "logger": "tls.obtain", "msg": "lock acquired"}
    records = [CADDY, failed, error, in_console_format(error), CADDY, tls]
    text = "".join(f"{it if isinstance(it, str) else json.dumps(it)}\n" for it in records)
    log = read(tmp_path / "a.log", text)
    assert len(log) == 2
    assert log.excluded == {
        "answered with 5xx, or not at all": 1,
        "lines that are no request": 3,
    }


def test_a_log_of_iis_has_fields_that_change_and_paths_whose_case_means_nothing(
    tmp_path: Path,
) -> None:
    later = (
        "#Fields: date time cs-method cs-uri-stem cs-uri-query c-ip sc-status sc-bytes time-taken\n"
        "2026-11-22 10:15:02 GET /A - 192.0.2.8 200 77 5\n"
        "2026-11-22 10:15:09 GET /b 192.0.2.8 200 77 5\n"
    )
    log = read(tmp_path / "a.log", IIS + later)
    assert [it.path for it in log.asked] == ["/a", "/A"]
    assert log.time_s.tolist() == [AT_S - 1, AT_S]
    np.testing.assert_allclose(log.took_s, [0.005, 0.012], rtol=1e-6)
    np.testing.assert_equal(log.body_bytes, [77, np.nan])
    assert log.excluded == {"lines that are no request": 1}
    assert log.notes == ["for IIS /a and /A are one page; other servers distinguish them"]


@pytest.mark.parametrize("text", [IIS, f'{AT_S} INFO: 192.0.2.7:5 - "GET /a HTTP/1.1" 200 OK'])
def test_a_size_that_a_log_lacks_is_unknown_and_not_0(tmp_path: Path, text: str) -> None:
    text = text.replace(str(AT_S), "2026-11-22T10:15:03Z")
    made = traffic_of(read(tmp_path / "a.log", text), Manner())
    assert made.workload.response_bytes is None
    assert ("responses", "the log doesn't say how large they are") in facts_of(made.workload)
    (sizes,) = (it for it in made.workload.fidelity if it.what.startswith("bytes"))
    assert (sizes.log, sizes.load, sizes.agrees) == (None, None, None)
    with pytest.raises(UserError, match="doesn't say how large responses are"):
        traffic_of(read(tmp_path / "a.log", text), Manner(), twin="files")


def test_sizes_that_a_log_has_only_later_are_those_that_count(tmp_path: Path) -> None:
    later = (
        "#Fields: date time cs-method cs-uri-stem sc-status sc-bytes\n"
        "2026-11-22 10:15:05 GET /b 200 100\n2026-11-22 10:15:06 GET /b 200 300\n"
    )
    made = traffic_of(read(tmp_path / "a.log", IIS + later), Manner(), twin="files")
    assert made.workload.response_bytes
    assert made.workload.response_bytes.mean == 200
    (sizes,) = (it for it in made.workload.fidelity if it.what.startswith("bytes"))
    assert sizes.log == 200
    assert sizes.load == pytest.approx(200)
    assert made.twin
    assert {it["size_bytes"] for it in made.twin.site["files"].values()} == {200}


@pytest.mark.parametrize(
    ("of_response", "known"),
    [
        ({"bodySize": 400, "content": {"size": 1830}}, 400),  # Firefox
        ({"bodySize": -1, "headersSize": 57, "_transferSize": 457, "content": {"size": 1830}}, 400),
        ({"bodySize": -1, "headersSize": -1, "_transferSize": 457, "content": {"size": 1830}}, 457),
        ({"bodySize": -1, "_transferSize": 2000, "content": {"size": 1830}, "headers": []}, 1830),
        ({"bodySize": -1, "content": {}}, None),
    ],
)
def test_a_browser_s_sizes_are_those_that_were_sent(
    of_response: dict[str, object], known: int | None
) -> None:
    packed = {"headers": [{"name": "Content-Encoding", "value": "br"}]}
    assert sent_bytes(HarResponse.model_validate(packed | of_response)) == known


def test_of_cloudfront_s_log_it_is_reported_what_the_edge_answered(tmp_path: Path) -> None:
    text = CLOUDFRONT_FIELDS + CLOUDFRONT.format("Miss") * 2 + CLOUDFRONT.format("Hit")
    log = read(tmp_path / "a.log", text)
    assert len(log) == 3
    np.testing.assert_allclose(log.took_s, 0.012, rtol=1e-6)
    (note,) = log.notes
    assert note.startswith("CloudFront answered 1 of 3 requests itself; your server saw 2")
