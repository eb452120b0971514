"""Values, texts and files as nobody means them, and small changes that make good ones bad."""

from collections.abc import Iterator
from random import Random
from typing import Any

Path = tuple[str | int, ...]

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 5, 7, 255, 1024, 9999, 65536, 2**31, 2**40, 2**63 - 1, -(2**63)),
    *(0.0, 0.5, 1.0, 1.4, -0.1, 1e-9, 1e9, 1e18, 1e300, float("inf"), float("-inf"), float("nan")),
]
WORDS: list[Any] = [
    *("", " ", "-", ".", "..", "../..", "/", "/etc/passwd", "a", "5", "true", "1e3", "inf", "nan"),
    *("[red]", "[/]", "{{ x", "{{ 1/0 }}", "{% for %}", "((", "a{1..", "/{1..999999999}", "/a b"),
    *("/é", "/#x", "/100%", "\n", "a\nb", "\0", "\x1b[2J", "é", "日本", "\u202e", "x" * 5000),
    *(
        "500ms",
        "10 weeks",
        "32MB",
        "1e9h",
        "100mbit",
        "2%",
        "999%",
        "always",
        "never",
        "gzip",
        "br",
    ),
    *("nginx", "static", "loadgen", "ab", "httperf", "open", "closed", "netns", "server-cpus"),
]
OTHERS: list[Any] = [True, False, [], {}, [[]], [1], ["a"], {"a": 1}, {"": ""}, [True], [{}]]


def value(random: Random) -> Any:  # noqa: ANN401 (whatever TOML and JSON have)
    """One value that probably doesn't belong where it is put."""
    kind = random.random()
    if kind < 0.02:
        return nested(random.choice([20, 60, 90]))
    return random.choice(NUMBERS if kind < 0.5 else WORDS if kind < 0.85 else OTHERS)


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def places(data: Any, here: Path = ()) -> Iterator[Path]:  # noqa: ANN401
    """Where something stands in a document, the document itself excluded."""
    inner = data.items() if isinstance(data, dict) else enumerate(data)
    for key, each in inner:
        yield (*here, key)
        if isinstance(each, dict | list):
            yield from places(each, (*here, key))


def changed(data: Any, random: Random, keys: list[str]) -> Path:  # noqa: ANN401
    """Change one thing of a document in place; give where."""
    everywhere = list(places(data))
    if not everywhere:  # nothing is left of it
        return ()
    where = random.choice(everywhere)
    around = data
    for part in where[:-1]:
        around = around[part]
    last = where[-1]
    how = random.random()
    if how < 0.15:
        del around[last]
    elif how < 0.35 and isinstance(around, dict):
        where = (*where[:-1], random.choice([*keys, *(word for word in WORDS if word)]))
        around[where[-1]] = value(random)
    elif how < 0.4 and isinstance(around, dict):
        around[str(value(random))[:200]] = around.pop(last)
    else:
        around[last] = value(random)
    return where


def bent(text: str, random: Random) -> str:
    """Change a text as accidents do: cut, doubled, turned, sprinkled."""
    at, other = sorted(random.randrange(len(text) + 1) for _ in range(2))
    other = min(other, at + 200)
    return random.choice(
        [
            text[:at],
            text[:at] + random.choice("[{") * 5000,
            text[:at] + text[other:],
            text[:other] + text[at:],
            text[:at] + str(value(random)) + text[at:],
            text[:at] + random.choice("\0\n[]{}\"'=,.\\é") + text[at:],
            text[:at] + text[at:other][::-1] + text[other:],
        ]
    )
