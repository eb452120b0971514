"""What prose gives away: command lines, loops of programs, caches, and who used the CPU."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webdyno.readers.facts import in_ms
from webdyno.readers.lines import NumberedLine
from webdyno.readers.output import Command
from webdyno.readers.values import url_figures

_HTTP = {"c": "concurrency", "connections": "concurrency", "concurrency": "concurrency"}
_LENGTH = {"d": "time_limit_s", "duration": "time_limit_s"}
_HTTP |= _LENGTH
_COUNTED = {"n": "requests", "requests": "requests"}

OPTIONS: dict[str, dict[str, str]] = {
    "ab": {"n": "requests", "c": "concurrency", "t": "time_limit_s", "k": "keepalive"},
    "wrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps", "s": "script", "script": "script"},
    "zrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps"},
    "h2load": _COUNTED | {"c": "concurrency", "D": "time_limit_s"},
    "hey": _COUNTED | {"c": "concurrency", "z": "time_limit_s"},
    "oha": _COUNTED | {"c": "concurrency", "z": "time_limit_s", "q": "demanded_rps"},
    "siege": {"c": "concurrency", "t": "time_limit_s"},
    "redis-benchmark": _COUNTED | {"c": "concurrency", "P": "pipelining", "p": "port", "h": "host"},
    "autocannon": _HTTP
    | {"p": "pipelining", "pipelining": "pipelining", "a": "requests", "amount": "requests"}
    | {"R": "demanded_rps", "overallRate": "demanded_rps"},
    "bombardier": _HTTP | _COUNTED | {"r": "demanded_rps", "rate": "demanded_rps"},
    "plow": _HTTP | _COUNTED | {"rate": "demanded_rps"},
    "rewrk": {"c": "concurrency", "connections": "concurrency", "d": "time_limit_s", "h": "url"},
    "ghz": _COUNTED
    | {"c": "concurrency", "concurrency": "concurrency", "n": "requests", "total": "requests"}
    | {"z": "time_limit_s", "duration": "time_limit_s", "r": "demanded_rps", "rps": "demanded_rps"},
    "vegeta": {"rate": "demanded_rps", "duration": "time_limit_s"},
    "k6": {"u": "concurrency", "vus": "concurrency"} | _LENGTH,
    "locust": {"u": "concurrency", "users": "concurrency", "t": "time_limit_s"},
    "httperf": {
        "num-conns": "connections",
        "num-calls": "calls_per_connection",
        "rate": "demanded_rps",
        "server": "host",
        "port": "port",
        "uri": "path",
    },
}
"""Options whose meaning matters here -> attribute of Command, or `script` and `url`."""

_NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True)).replace("wrk|", "wrk2?|")

_COMMAND = re.compile(
    rf"(?:^|[\s`$#>(/])({_NAMES})(?:\.exe|-(?:linux|darwin|windows)-\w{{1,10}}(?:\.exe)?)?\s+"
    r"((?:(?:run|attack|load)\s+)?(?:[-\u2013\u2014]|https?://|localhost[:/]).*)"
)
_LONG_DASH = re.compile(r"(?<!\S)[\u2013\u2014](?=\w)")
"""Typesetters turn `--` into one long dash."""

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|S|M|H)?$")

_OPEN_LOOP = re.compile(r"--rate|-R\d|-R$|--latency-correction")
"""oha's -q alone still counts from when a request was sent."""

_OPEN = {"vegeta", "zrk"}
"""Tools that always keep to a timetable."""

_FLAGS = {"k", "q", "r", "v", "l", "b", "L"}
_PIPELINE = re.compile(r"[\w./-]{0,100}pipelin[\w-]{0,40}\.lua$")
_PROMPT = re.compile(r"[\s$#>`%\u276f]*(?:[\w.@~:/-]{1,80}[$#>%]\s+)?(?:sudo |npx |\./)?$")
SEVERAL = 2
"""At least so many requests are sent at once by a script whose depth isn't known."""
_WORDS = ("pipelin", "loop", "iter", "turns", "rounds", "cache", "cdn", "varnish", "cloudf", "% ")
"""A line without any of these says nothing here; the exact patterns are slower."""
_LOOP = re.compile(
    r"^(?:(?:let|var|const|int|long|my|for)\b\s*\(?\s*(?:(?:let|var|int|long)\s+)?)?"
    r"\$?(loops?|iter(?:ation)?s?|turns|rounds)\s*:?=\s*(\d{3,12})\s*(?:[;)#/]|$)",
    re.IGNORECASE,
)
"""A statement of a program; in a sentence the same words say what a run was made of."""
_PAGE_CACHE = re.compile(
    r"W3[ -]?Total[ -]?Cache|WP[ -](?:Super|Fastest|Rocket)[ -]?Cache|page[ -]cach\w+|"
    r"fastcgi_cache|proxy_cache|\bVarnish\b|\bCDN\b|CloudFlare|CloudFront",
    re.IGNORECASE,
)
_NOT_THERE = re.compile(
    r"\b(?:no|not|without|neither|nor|never|isn't|wasn't|aren't|instead of|disabled?|off|kein\w*|"
    r"ohne|nicht|sans|pas)\b[^.;:!?]{0,80}$",
    re.IGNORECASE,
)
_OFF_BEHIND = re.compile(
    r"[^.;:!?]{0,40}?\b(?:off|disabled|bypassed|switched off|not used|no-cache)\b", re.IGNORECASE
)
_KERNELS = re.compile(
    r"\b(?:kernel|linux|os|operating system|file ?system|disk|memory|ram|vm|buffer)"
    r"(?:['\u2019]s)?\s+$",
    re.IGNORECASE,
)
"""Whose page cache holds files and not responses."""
_PIPELINED = re.compile(
    r"[\W_]{0,10}pipelin(?:e|ing)(?: factor| depth)?[\s*_`]{0,6}[:=|][\s*_`]{0,6}(\d{1,5})\b",
    re.IGNORECASE,
)
_CLIENT_CPU = re.compile(rf"\b(\d{{1,3}}) ?% ({'|'.join(sorted(OPTIONS))}|wrk2)\b")


def find_command(line: NumberedLine) -> Command | None:
    """Give the command that a line shows."""
    if not any(mark in line.text for mark in ("-", "\u2013", "\u2014", "://", "localhost")):
        return None
    match = _COMMAND.search(line.text)
    if not match:
        return None
    # In quotation marks of any kind, and with a mark at its end, it is the same command.
    words = [word.strip("\"'`\u201c\u201d") for word in match[2].split()]
    known = OPTIONS[match[1].removesuffix("2") if match[1] == "wrk2" else match[1]]
    dashed = [_LONG_DASH.sub("--" if len(word) > 3 else "-", word) for word in words]
    said: dict[str, Any] = {}
    for option, value in _options(dashed, known):
        said |= _attribute(known[option], option, value)
    said |= _scripted(said.pop("script", ""), dashed)
    if not said and not _PROMPT.match(line.text[: match.start(1)]):
        return None  # a sentence with the tool's name and somebody's address
    if match[1] not in {"httperf", "redis-benchmark"}:
        said |= _url(said.pop("url", None), words)
    if not said:
        return None
    open_loop = match[1] in _OPEN or any(_OPEN_LOOP.match(word) for word in dashed)
    return Command(tool=match[1], line=line.number, open_loop=open_loop, **said)


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


def _cluster(letters: str, following: str, known: dict[str, str]) -> list[tuple[str, str]]:
    """Read `-kc` followed by 100, or `-c100`."""
    options: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        if letter in known and known[letter] != "keepalive":
            return [*options, (letter, letters[place + 1 :].lstrip("=") or following)]
        if letter in known:
            options.append((letter, ""))
        elif letter not in _FLAGS:
            break
    return options


def _attribute(name: str, option: str, value: str) -> dict[str, Any]:
    """Give what an option says, under the name of Command's attribute."""
    read = _value_of(name, value)
    if read is None:
        return {}
    if name == "pipelining":
        dashes = "-" if len(option) == 1 else "--"
        return {name: read, "pipelined_by": f"{dashes}{option} {value}"}
    return {name: read}


def _value_of(name: str, value: str) -> object:
    if name == "keepalive":
        return True
    if name in {"host", "path", "script", "url"}:
        return value or None
    if name == "demanded_rps":
        return _rate(value)
    numeral = _DURATION.match(value)
    if name == "time_limit_s":
        text = f"{value}s" if numeral and numeral[2] is None else value.lower()
        length_ms = in_ms(text) if text else None
        return None if length_ms is None else length_ms / 1000
    return int(numeral[1]) if numeral and numeral[2] is None else None


def _rate(value: str) -> float | None:
    """Read `2000`, and vegeta's and plow's `50/1s`, `100/m`."""
    numeral, slash, unit = value.partition("/")
    if not numeral.isdecimal() or len(numeral) > 12:
        return None
    if not slash:
        return int(numeral)
    unit_ms = in_ms(unit if unit[:1].isdigit() else f"1{unit}")
    return int(numeral) * 1000 / unit_ms if unit_ms else None


def _scripted(script: str, words: list[str]) -> dict[str, Any]:
    """Give the pipelining of wrk's `-s pipeline.lua -- 16`."""
    if not script or not _PIPELINE.match(script):
        return {}
    after = words[words.index("--") + 1 :] if "--" in words else []
    depth = next((int(word) for word in after if word.isdecimal() and len(word) < 6), SEVERAL)
    return {"pipelining": depth, "pipelined_by": f"-s {script}"}


def _url(given: str | None, words: list[str]) -> dict[str, Any]:
    for word in [given or "", *words]:
        if word.startswith(("http://", "https://", "localhost:", "localhost/")):
            return {"path": "/"} | url_figures(word)
    return {}


@dataclass(frozen=True)
class CountedLoop:
    """A program's loop with a fixed number of turns."""

    line: int
    variable: str
    turns: int


@dataclass(frozen=True)
class PageCache:
    """A mention of a cache that answers with whole pages."""

    line: int
    name: str


@dataclass(frozen=True)
class ClientCpu:
    """A load generator's share of a processor, as somebody saw it."""

    line: int
    tool: str
    percent: int


@dataclass(frozen=True)
class PipelineDepth:
    """A setting above figures that says how many requests were sent at once."""

    line: int
    depth: int


def hints(line: NumberedLine) -> Iterator[CountedLoop | PageCache | ClientCpu | PipelineDepth]:
    """Give what a line of prose or of a program gives away."""
    small = line.text.lower()
    if not any(word in small for word in _WORDS):
        return
    for match in _LOOP.finditer(line.text):
        yield CountedLoop(line.number, match[1].lower(), int(match[2]))
    if (depth := _PIPELINED.match(line.text)) and int(depth[1]) > 1:
        yield PipelineDepth(line.number, int(depth[1]))
    if cache := _cache_in_use(line.text):
        yield PageCache(line.number, cache)
    for match in _CLIENT_CPU.finditer(line.text):
        yield ClientCpu(line.number, match[2], int(match[1]))


def _cache_in_use(text: str) -> str | None:
    """Name a cache of responses, unless the sentence says that it isn't there."""
    for match in _PAGE_CACHE.finditer(text):
        before, behind = text[max(0, match.start() - 120) : match.start()], text[match.end() :]
        kernels = match[0].lower().startswith("page") and _KERNELS.search(before)
        if not kernels and not _NOT_THERE.search(before) and not _OFF_BEHIND.match(behind):
            return match[0]
    return None
