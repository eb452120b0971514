"""Whatever stands in a catalogue's files, reading them ends, with a message at worst."""

from pathlib import Path

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webdyno.definitions import Catalogue, catalogue
from webdyno.definitions.catalogue import BUILT_IN
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.mistake import Mistake
from webdyno.stack.packages import missing_packages
from webdyno.stack.roles import resolve_services, resolve_stack

OWN = Catalogue.load()
FILES = [
    path
    for kind in ("service", "stack", "site")
    for path in sorted(BUILT_IN.glob(f"{kind}s/*/{kind}.toml"))
]
NASTY = [
    *("", ".", "..", "../../x", "/etc/passwd", "a\0b", "a\nb", "é", "x" * 5000, "[/]", "(("),
    *("{{", "{{ nope }}", "{% for a in range(9) %}", "a=b", "--purge", "unix", "server-cpus"),
    *("(a*)*b", "/{1..0}", "/{1..9}{1..9}", "a" * 30 + "/" + "b" * 300),
    *(-1, 0, 2**70, 1e308, float("inf"), float("nan"), True, [], {}, [[]], [""], [{}], {"": ""}),
]


def places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All keys of a file's data, however deep."""
    pairs = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [at, *(place for key, inner in pairs for place in places(inner, (*at, key)))]


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[Path, str]:
    """Draw a file of webdyno's own catalogue, and its text with some values or keys changed."""
    path = draw(st.sampled_from(FILES))
    data = TomlFile(path).data
    for _ in range(draw(st.integers(1, 3))):
        *outer, last = draw(st.sampled_from([place for place in places(data) if place]))
        table: object = data
        for key in outer:
            table = table[key]  # type: ignore[index]
        change = draw(st.sampled_from(["value", "key", "gone"]))
        if change == "value" or isinstance(table, list):
            table[last] = draw(st.sampled_from(NASTY))  # type: ignore[index]
        elif isinstance(table, dict):
            value = table.pop(last)
            if change == "key":
                table[draw(st.sampled_from([n for n in NASTY if isinstance(n, str)]))] = value
    return path, tomli_w.dumps(data)


@settings(max_examples=500, suppress_health_check=list(HealthCheck))
@given(spoilt())
def test_any_spoilt_file_is_refused_or_right(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Path, str]
) -> None:
    original, text = case
    path = tmp_path_factory.getbasetemp() / "spoilt" / original.parent.name / original.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        if original.name == "service.toml":
            catalogue._read_service(path)
        elif original.name == "stack.toml":
            stack = catalogue._read_stack(path, OWN.services)
            resolve_stack(stack, None, {}, server_cpus=1)
            missing_packages([stack])
        else:
            site = catalogue._read_site(path, OWN.services)
            resolve_services(site.services, server_cpus=1)
            _ = site.ready_path
    except Mistake as mistake:
        told = str(mistake)
        if not told.startswith((str(path), "stack ")):
            raise
