"""Load generators' command lines as people write them down, typesetters' dashes and all."""

import re
from dataclasses import replace
from itertools import takewhile
from typing import Any

from webdyno.formats import Command, Output
from webdyno.formats.facts import in_ms
from webdyno.formats.text import NumberedLine, url_figures

_HTTP = {"c": "concurrency", "connections": "concurrency", "concurrency": "concurrency"}
_LENGTH = {"d": "time_limit_s", "duration": "time_limit_s"}
_HTTP |= _LENGTH
_COUNTED = {"n": "requests", "requests": "requests"}

OPTIONS: dict[str, dict[str, str]] = {
    "ab": {"n": "requests", "c": "concurrency", "t": "time_limit_s", "k": "keepalive"},
    "wrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps", "s": "script", "script": "script"},
    "zrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps"},
    "h2load": _COUNTED
    | {"c": "concurrency", "clients": "concurrency", "D": "time_limit_s"}
    | {"duration": "time_limit_s", "m": "streams", "max-concurrent-streams": "streams"}
    | {"rps": "each_rps"},
    "hey": _COUNTED
    | {"c": "concurrency", "z": "time_limit_s", "q": "each_rps"}
    | {"disable-keepalive": "reconnects"},
    "oha": _COUNTED
    | {"c": "concurrency", "z": "time_limit_s", "q": "demanded_rps", "p": "streams"}
    | {"disable-keepalive": "reconnects"},
    "siege": {"c": "concurrency", "concurrent": "concurrency", "t": "minutes", "time": "minutes"},
    "redis-benchmark": _COUNTED | {"c": "concurrency", "P": "pipelining", "p": "port", "h": "host"},
    "autocannon": _HTTP
    | {"p": "pipelining", "pipelining": "pipelining", "a": "requests", "amount": "requests"}
    | {"R": "demanded_rps", "overallRate": "demanded_rps"}
    | {"r": "each_rps", "connectionRate": "each_rps"},
    "bombardier": _HTTP
    | _COUNTED
    | {"r": "demanded_rps", "rate": "demanded_rps"}
    | {"a": "reconnects", "disableKeepAlives": "reconnects"},
    "plow": _HTTP | _COUNTED | {"rate": "demanded_rps"},
    "rewrk": {"c": "concurrency", "connections": "concurrency", "d": "time_limit_s", "h": "url"},
    "ghz": {"c": "concurrency", "concurrency": "concurrency", "n": "requests", "total": "requests"}
    | {"z": "time_limit_s", "duration": "time_limit_s", "r": "demanded_rps", "rps": "demanded_rps"},
    "vegeta": {"rate": "demanded_rps", "duration": "time_limit_s"},
    "k6": {"u": "concurrency", "vus": "concurrency"} | _LENGTH,
    "locust": {"u": "concurrency", "users": "concurrency", "t": "time_limit_s"}
    | {"run-time": "time_limit_s"},
    "httperf": {
        "num-conns": "connections",
        "num-conn": "connections",
        "num-calls": "calls_per_connection",
        "num-call": "calls_per_connection",
        "rate": "demanded_rps",
        "server": "host",
        "port": "port",
        "uri": "path",
    },
}
"""Options whose meaning matters here -> attribute of Command, or `minutes`, `script` and `url`."""

FLAGS = {"keepalive", "reconnects"}
"""Attributes of options without a value."""

ALIASES = {"boom": "hey", "wrk2": "wrk"}
"""Other names -> the tool whose options they take."""

DEFAULTS: dict[str, dict[str, int]] = {
    tool: {"concurrency": 50, "requests": 200} for tool in ("hey", "oha", "ghz")
}
"""What tools do that don't print what they did."""

_BODY = "H header headers m method b body d data t timeout"
_TLS = "k insecure cert key cacert"

_NO_MATTER = {
    "ab": "T H p u v A P X C x y z w e g h V q r l s b B i f Z I E m S",
    "wrk": "t threads H header L latency U u_latency T timeout v version B batch_latency",
    "zrk": "t threads H header T timeout latency json",
    "h2load": "t threads H header i input-file d data v verbose w window-bits W f max-frame-size "
    "connection-window-bits p no-tls-proto ciphers tls13-ciphers h1 h3 alpn-list npn-list groups "
    "T connection-active-timeout N connection-inactivity-timeout warm-up-time log-file connect-to "
    "B base-uri header-table-size encoder-header-table-size histogram output-file sni ktls "
    "no-udp-gso max-udp-payload-size qlog-file-base tls-session-file",
    "hey": f"{_BODY} T a A D x h2 host disable-compression disable-redirects cpus more o U",
    "oha": f"{_BODY} T a A D Z F x r redirect w u o j wait-ongoing-requests-after-deadline http2 "
    "http-version no-tui fps latency-correction no-color disable-color output output-format json "
    "insecure cacert cert key ipv4 ipv6 host no-pre-lookup connect-to connect-timeout db-url "
    "disable-compression unix-socket stats-success-breakdown time-unit debug",
    "siege": "b benchmark d delay i internet f file H header q quiet v verbose r reps log l g get "
    "A user-agent T content-type j json-output R rc m mark p print N n",
    "redis-benchmark": "t q d r csv n k a s u threads precision e l I cluster dbnum user",
    "autocannon": f"{_BODY} i input l latency T title w workers n no-progress j json "
    "renderStatusCodes expectBody E F form t debug warmup ca S socketPath",
    "bombardier": f"{_BODY} {_TLS} f body-file l latencies p print o format s stream fasthttp "
    "http1 http2 q no-print",
    "plow": f"{_BODY} {_TLS} listen content host socks5 resp-timeout dial-timeout summary json "
    "interval seconds stream auto-open-browser",
    "rewrk": "t threads host http2 pct json m method H header b body verify-ssl",
    "ghz": "proto protoset call d data D data-file b binary B binary-file m metadata M "
    "metadata-file i import-paths insecure skipTLS skip-tls cacert cert key cname t timeout "
    "connections cpus O format o output name tags e enable-compression lb-strategy connect-timeout "
    "keepalive debug reflect-metadata",
    "vegeta": "targets body header name timeout keepalive connections max-connections workers "
    "max-workers http2 h2c insecure lazy format output redirects laddr root-certs cert key "
    "resolvers chunked max-body session-tickets type inputs",
    "k6": "e env out o config insecure-skip-tls-verify no-usage-report quiet q v verbose tag "
    "summary-export summary-trend-stats summary-mode no-color no-summary log-output http-debug",
    "locust": "f locustfile H host r spawn-rate hatch-rate headless no-web csv html L loglevel "
    "tags only-summary json w workers",
    "httperf": "hog client timeout think-timeout add-header method print-reply print-request "
    "send-buffer recv-buffer http-version v verbose ssl ssl-no-reuse ssl-ciphers server-name "
    "num-calls",
}

NO_MATTER = {tool: frozenset(names.split()) for tool, names in _NO_MATTER.items()}
"""Options that change nothing of what an audit looks at. All others are named as unread."""

_NAMES = "|".join(sorted({*OPTIONS, *ALIASES}, key=len, reverse=True))

_COMMAND = re.compile(
    rf"(?:^|[\s`$#>(/])({_NAMES})(?:\.exe|[-_](?:linux|darwin|windows)(?:[-_]\w{{1,10}})?(?:\.exe)?)?\s+"
    r"((?:(?:run|attack|load)\s+)?(?:[-\u2013\u2014]|[\"'\u201c]?https?://|localhost[:/]).*)"
)
MOST_CHARACTERS = 2000
"""Those of a command that are read."""
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+|\S+")
_SHELL = re.compile(r"\||[12&]?>|<|&|;")
"""Where another command begins, or a file."""
_LEFT_OUT = re.compile(r"\.{3}|…|\$|\\$|<\w|\[\w[\w ]*\]$")
"""What stands for options that were left out, or that somebody fills in."""

_LONG_DASH = re.compile(r"(?<!\S)[\u2013\u2014](?=\w)")
"""Typesetters turn `--` into one long dash."""

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|S|M|H)?$")
_MANY = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([kKmM])$")
_THOUSANDS = {"k": 1000, "m": 1_000_000}
"""oha's numbers of requests, as in `-n 10k`."""
_SIEGE_S = {"": 60, "s": 1, "m": 60, "h": 3600}
"""Seconds of siege's units; it takes minutes where there is none."""

_RATE = re.compile(r"\d{1,12}(?:\.\d{1,9})?$")
_OPEN_LOOP = re.compile(r"--rate|-R\d|-R$|--latency-correction")
"""oha's -q alone still counts from when a request was sent."""

_USERS = {"k6", "locust"}
"""Tools whose users come and go: there are fewer or more of them than the command says."""
MORE = 1.01
"""Times the requests that a command asks for from which an output isn't its own."""

_OPEN = {"vegeta", "zrk"}
"""Tools that always keep to a timetable."""

_CLOSE = re.compile(r"Connection: ?close", re.IGNORECASE)
_PIPELINE = re.compile(r"[\w./-]{0,100}pipelin[\w-]{0,40}\.lua$")
_PROMPT = re.compile(
    r"[\s$#>`%\u276f]*(?:[\w.@~:/-]{1,80}[$#>%]\s+)?(?:sudo |npx )?(?:[\w.~-]{0,80}/){0,10}$"
)
SEVERAL = 2
"""At least so many requests are sent at once by a script whose depth isn't known."""


def find_command(line: NumberedLine) -> Command | None:
    """Return the command that a line shows."""
    if not any(mark in line.text for mark in ("-", "\u2013", "\u2014", "://", "localhost")):
        return None
    match = _COMMAND.search(line.text)
    if not match:
        return None
    before, tool = line.text[: match.start(1)], match[1]
    text = match[2][:MOST_CHARACTERS]
    if before.count("`") % 2:  # the command ends with its quotation
        text = text.partition("`")[0]
    words, dashed = _words(text)
    name = ALIASES.get(tool, tool)
    known = OPTIONS[name]
    said: dict[str, Any] = {}
    for option, value in _options(dashed, known):
        said |= _attribute(known[option], option, value)
    said |= _pipelining_by(said.pop("script", ""), dashed)
    if not said and not _PROMPT.match(before):
        return None  # a sentence with the tool's name and somebody's address
    if tool not in {"httperf", "redis-benchmark"}:
        addresses = ("http://", "https://", "localhost:", "localhost/")
        named = [word for word in [said.pop("url", ""), *words] if word.startswith(addresses)]
        said |= {"path": "/"} | url_figures(named[0]) if named else {}
    if not said:
        return None
    return Command(
        tool=tool,
        line=line.number,
        open_loop=tool in _OPEN or any(_OPEN_LOOP.match(word) for word in dashed),
        whole=not any(_LEFT_OUT.search(word) for word in words),
        unread=_unknown_options(dashed, {*known, *NO_MATTER[name]}),
        **{"reconnects": _CLOSE.search(text) is not None} | said,
    )


def _words(text: str) -> tuple[list[str], list[str]]:
    """Return the words up to where the shell would end the command; then with plain dashes."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        if _SHELL.match(match[0]):
            break
        # In quotation marks of any kind, and with a mark at its end, it is the same command.
        words.append(match[0].strip("\"'`\u201c\u201d"))
    return words, [_LONG_DASH.sub("--" if len(word) > 3 else "-", word) for word in words]


def _options(words: list[str], known: dict[str, str]) -> list[tuple[str, str]]:
    options: list[tuple[str, str]] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        bare = name.lstrip("-")
        if word.startswith("-") and len(bare) > 1 and bare in known:
            options.append((bare, value if equals else following))
        elif word.startswith("-") and not word.startswith("--"):
            options += _cluster(word[1:], following, known)
    return options


_CLUSTERED = {"k", "q", "r", "v", "l", "b", "L"}


def _cluster(letters: str, following: str, known: dict[str, str]) -> list[tuple[str, str]]:
    """Read `-kc` followed by 100, or `-c100`."""
    options: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        if letter in known and known[letter] not in FLAGS:
            return [*options, (letter, letters[place + 1 :].lstrip("=") or following)]
        if letter in known:
            options.append((letter, ""))
        elif letter not in _CLUSTERED:
            break
    return options


def _unknown_options(words: list[str], known: set[str]) -> tuple[str, ...]:
    unknown: dict[str, None] = {}
    for word in takewhile(lambda word: word != "--", words):
        name = word.partition("=")[0]
        bare = name.lstrip("-")
        if not word.startswith("-") or not bare[:1].isalpha() or bare in known:
            continue
        if name.startswith("--"):
            unknown[name] = None
        elif bare[0] not in known:
            unknown[f"-{bare[0]}" if len(bare) < 3 else name] = None
    return tuple(unknown)


def _attribute(name: str, option: str, value: str) -> dict[str, Any]:
    if name == "minutes":
        match = _DURATION.match(value)
        unit = (match[2] or "").lower() if match else ""
        return {"time_limit_s": int(match[1]) * _SIEGE_S[unit]} if match and unit != "ms" else {}
    read = _value_of(name, value)
    if read is None:
        return {}
    if name == "pipelining":
        dashes = "-" if len(option) == 1 else "--"
        return {name: read, "pipelined_by": f"{dashes}{option} {value}"}
    return {name: read}


def _value_of(name: str, value: str) -> object:
    if name in FLAGS:
        return True
    if name in {"host", "path", "script", "url"}:
        return value or None
    if name in {"demanded_rps", "each_rps"}:
        return _rate(value) or None
    numeral = _DURATION.match(value)
    if name == "requests" and (many := _MANY.match(value)):
        return int(float(many[1]) * _THOUSANDS[many[2].lower()])
    if name == "time_limit_s":
        text = f"{value}s" if numeral and numeral[2] is None else value.lower()
        length_ms = in_ms(text) if text else None
        return None if length_ms is None else length_ms / 1000
    return int(numeral[1]) if numeral and numeral[2] is None else None


def _rate(value: str) -> float | None:
    """Read `2000`, and vegeta's and plow's `50/1s`, `100/m`."""
    numeral, slash, unit = value.partition("/")
    if not _RATE.match(numeral):
        return None
    if not slash:
        return float(numeral)
    unit_ms = in_ms(unit if unit[:1].isdigit() else f"1{unit}")
    return float(numeral) * 1000 / unit_ms if unit_ms else None


def _pipelining_by(script: str, words: list[str]) -> dict[str, Any]:
    """Return the pipelining of wrk's `-s pipeline.lua -- 16`."""
    if not script or not _PIPELINE.match(script):
        return {}
    after = words[words.index("--") + 1 :] if "--" in words else []
    depth = next((int(word) for word in after if word.isdecimal() and len(word) < 6), SEVERAL)
    return {"pipelining": depth, "pipelined_by": f"-s {script}"}


def prints_for(tool: str) -> str:
    return ALIASES.get(tool, tool)


def is_another(command: Command, output: Output) -> bool:
    """Whether an output can't be of this command, by its connections or number of requests."""
    asked, printed = command.concurrency, output.concurrency
    if asked and printed and asked != printed and output.tool not in _USERS:
        return True
    if command.time_limit_s or command.unread or not command.requests or not output.requests:
        return False
    most = (printed or asked or 1) * (command.streams or 1)
    return output.requests > MORE * command.requests + most


def with_command(output: Output, command: Command) -> Output:
    """Return an output with what its command line says."""
    if command.streams and output.protocol == "http/1.1":  # that is what h2load's -m means there
        by = f"-m {command.streams}"
        command = replace(command, streams=None, pipelining=command.streams, pipelined_by=by)
    defaults = DEFAULTS.get(output.tool, {}) if command.whole and not command.unread else {}
    concurrency = output.concurrency or command.concurrency
    if concurrency is None and defaults:
        concurrency = min(defaults["concurrency"], command.requests or defaults["requests"])
    each_rps = command.each_rps * (concurrency or 1) if command.each_rps else None
    demanded = output.demanded_rps or command.demanded_rps or each_rps
    # wrk has no -R: whatever its output looks like, with one it is wrk2.
    wrk2 = output.tool == "wrk" and command.demanded_rps is not None
    return replace(
        output,
        tool="wrk2" if wrk2 else output.tool,
        command=command,
        host=output.host or command.host,
        port=output.port or command.port,
        path=output.path or command.path,
        pipelining=output.pipelining or command.pipelining or 1,
        streams=command.streams or (1 if command.whole else None),
        concurrency=concurrency,
        keepalive_requested=output.keepalive_requested or command.keepalive or None,
        time_limit_s=command.time_limit_s or output.time_limit_s,
        demanded_rps=demanded,
        loop="open" if command.open_loop else output.loop or "closed",
    )
