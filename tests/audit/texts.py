"""Texts to audit: outputs that were recorded for real, and ab's with figures of one's choice."""

import io
from pathlib import Path

from webdyno.audit import Audit, AuditWarning, audit_lines
from webdyno.audit.reader import read_items
from webdyno.formats import Output
from webdyno.formats.text import read_lines

RECORDED = Path(__file__).with_name("outputs")
"""What the tools printed against a private nginx: ab 2.3, httperf 0.9.0, wrk 4.1.0, wrk2,
h2load 1.52.0, hey 0.1.4, oha 1.16.0, siege 4.0.7 and redis-benchmark 7.0.15. ab-syn.txt is from a
network namespace that dropped one SYN in sixty; autobench.csv is httperf's figures under
autobench's column names. hey.csv, oha.csv, h2load-no-reconnect.txt, siege-4.1.7.txt and those of
the other tools are figures of our own, in the form that the tool's source prints."""


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


def audited(text: str | bytes) -> Audit:
    content = text if isinstance(text, bytes) else text.encode()
    return audit_lines(read_lines(io.BufferedReader(io.BytesIO(content))))


def found(text: str, rule: str) -> list[AuditWarning]:
    return [warning for warning in audited(text).warnings if warning.rule == rule]


def serious(text: str) -> set[str]:
    return {each.rule for each in audited(text).warnings if each.severity == "serious"}


def outputs(text: str) -> list[Output]:
    lines = read_lines(io.BufferedReader(io.BytesIO(text.encode())))
    return [item for item in read_items(lines) if isinstance(item, Output)]


def ab(
    *,
    server: str = "nginx/1.22.1",
    path: str = "/page.html",
    document: int = 4000,
    head: int = 240,
    concurrency: int = 32,
    requests: int = 400_000,
    took_s: float = 12.5,
    rate: float | None = None,
    transfer: float | None = None,
    total: int | None = None,
    body: int | None = None,
    length_failures: int = 0,
    non_2xx: int = 0,
    kept: int | None = None,
    connect: tuple[int, int, int] = (0, 0, 3),
    host: str = "web.test",
    p99: int = 4,
) -> str:
    """Write what ab prints; figures that aren't given agree with the others."""
    body = document * requests if body is None else body
    total = body + head * requests if total is None else total
    rate = requests / took_s if rate is None else rate
    transfer = total / 1024 / took_s if transfer is None else transfer
    lines = [
        f"Server Software:        {server}",
        f"Server Hostname:        {host}",
        "Server Port:            80",
        "",
        f"Document Path:          {path}",
        f"Document Length:        {document} bytes",
        "",
        f"Concurrency Level:      {concurrency}",
        f"Time taken for tests:   {took_s:.3f} seconds",
        f"Complete requests:      {requests}",
        f"Failed requests:        {length_failures}",
    ]
    if length_failures:
        kinds = f"(Connect: 0, Receive: 0, Length: {length_failures}, Exceptions: 0)"
        lines.append(f"   {kinds}")
    if non_2xx:
        lines.append(f"Non-2xx responses:      {non_2xx}")
    if kept is not None:
        lines.append(f"Keep-Alive requests:    {kept}")
    least, median, most = connect
    lines += [
        f"Total transferred:      {total} bytes",
        f"HTML transferred:       {body} bytes",
        f"Requests per second:    {rate:.2f} [#/sec] (mean)",
        f"Time per request:       {1000 * concurrency * took_s / requests:.3f} [ms] (mean)",
        f"Time per request:       {1000 * took_s / requests:.3f} [ms] (mean, across all of them)",
        f"Transfer rate:          {transfer:.2f} [Kbytes/sec] received",
        "",
        "Connection Times (ms)",
        "              min  mean[+/-sd] median   max",
        f"Connect:      {least:3}    1   2.7    {median:3}     {most:3}",
        "Total:          1    2   0.8      2       9",
        "",
        "Percentage of the requests served within a certain time (ms)",
        "  50%      2",
        f"  99%      {p99}",
        " 100%      9 (longest request)",
        "",
    ]
    return "\n".join(lines) + "\n"


def wrk(
    *,
    url: str = "http://192.0.2.7:8080/",
    concurrency: int = 256,
    requests: int = 1_000_000,
    took: str = "10.00s",
    mean: str = "2.50ms",
    stdev: str = "1.10ms",
    longest: str = "40.10ms",
    size: int = 238,
    rate: float = 100_000.0,
    more: str = "",
) -> str:
    """Write what wrk prints."""
    return (
        f"Running 10s test @ {url}\n  4 threads and {concurrency} connections\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
        f"    Latency   {mean}   {stdev}   {longest}   75.02%\n"
        "    Req/Sec    25.10k     1.10k   30.00k    70.00%\n"
        f"  {requests} requests in {took}, {requests * size / 2**20:.2f}MB read\n{more}"
        f"Requests/sec: {rate:.2f}\nTransfer/sec: {rate * size / 2**20:.2f}MB\n"
    )
