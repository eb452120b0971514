"""Reads Compose files: YAML 1.2 within limits, merged, with variables filled in."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, read_named, reading
from webdyno.core.tables import as_table, is_table, long_form
from webdyno.systems.containers.compose_relations import ComposeParts, env_files
from webdyno.systems.env_files import ENV_FILE, or_example

USUAL_FILES = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
OVERRIDES = (
    *("compose.override.yaml", "compose.override.yml"),
    *("docker-compose.override.yaml", "docker-compose.override.yml"),
)
PROFILES = "COMPOSE_PROFILES"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Of a service or a volume."""
SEVERAL = ","
"""Between the names of files that are merged."""
_VARIABLE = re.compile(
    r"\$(?:\$|(?P<plain>\w+)"
    r"|\{(?P<name>\w+)(?:(?P<how>:?[-?+])(?P<other>(?:[^{}]|\$\{[^{}]*\})*))?\})"
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPED, _ESCAPES = re.compile(r"\\(.)"), {"n": "\n", "t": "\t", "r": "\r"}
_COMMENT = re.compile(r"(?:^|(?<!\s)\s++)#.*$")
REPLACED = {"command", "entrypoint", "test"}
"""Lists that the later file says again; others go on behind those of the earlier."""
TABLES = {"environment", "labels", "args", "depends_on", "sysctls", "extra_hosts"}
"""Keys that may be written as a list: of NAME=VALUE, or of names."""
MOST_BYTES = MIB
MOST_VALUES = 100_000
"""With aliases counted as often as they stand for something."""
MOST_FILLED = 16 * MIB
"""Characters in the place of variables."""
DEEPEST = 100
MOST_DIGITS = 18
TAG = "tag:yaml.org,2002:"
CONTAINERS = {f"{TAG}map", f"{TAG}seq"}
SCALARS = {
    f"{TAG}{name}": (re.compile(pattern), list(first))
    for name, pattern, first in (
        ("bool", r"^(?:true|false)$", "tf"),
        ("int", rf"^[-+]?[0-9]{{1,{MOST_DIGITS}}}$", "-+0123456789"),
        ("float", r"^[-+]?[0-9]+\.[0-9]*$", "-+0123456789"),
        ("null", r"^(?:~|null|)$", ["~", "n", ""]),
        ("merge", r"^<<$", "<"),
    )
}
"""By tag: how such a value is written, and the characters that it may begin with."""
STRING = f"{TAG}str"


@dataclass(frozen=True)
class ComposeProject:
    """What Compose files say together."""

    files: tuple[Path, ...]
    all_services: Mapping[str, Any]
    """As they are written."""
    whole: Mapping[str, Any]
    """All that the files say."""
    variables: Mapping[str, str]
    """Of the environment, where it may be read, and of `.env` next to the first file."""
    environment: Mapping[str, str]
    unset: tuple[str, ...]
    """Variables that the files name and nobody sets: they are empty."""
    within: Path | None
    """All that its author may reach of this machine, if that isn't who calls."""
    examples: tuple[Path, ...]
    """Files that stand in the place of files of variables, which Git doesn't have."""

    @property
    def name(self) -> str:
        """For people: the names of its files."""
        return SEVERAL.join(file.name for file in self.files)

    @property
    def folder(self) -> Path:
        return self.files[0].parent

    @property
    def notes(self) -> Iterator[str]:
        """What people may not know of it."""
        if len(self.files) > 1:
            yield f"{self.files[-1].name} is merged into {self.files[0].name}"
        if names := ", ".join(dict.fromkeys(file.name for file in self.examples)):
            yield f"{names} stands in the place of a file of variables that isn't there"
        if self.unset:
            yield f"set by nobody, so empty: {', '.join(self.unset)}"

    def services(self, front: str = "") -> dict[str, Any]:
        """Return those without a profile, those of COMPOSE_PROFILES, and the front one."""
        active = {part.strip() for part in self.variables.get(PROFILES, "").split(",")}
        chosen = {}
        for name, service in self.all_services.items():
            profiles = as_table(service).get("profiles")
            names = set(map(str, profiles if isinstance(profiles, list) else [profiles]))
            if str(name) == front or not profiles or "*" in active or names & active:
                chosen[str(name)] = service
        return chosen


def read_compose(files: Sequence[Path], place: str, within: Path | None = None) -> ComposeProject:
    """Read files, each merged into those before it; raise UserError where that isn't possible.

    As with Compose, an override file next to a single one of the usual name is merged as well.
    `within`: all files that may be read, whose author isn't who calls; he gets no variables either.
    """
    environment = os.environ if within is None else {}
    reads = partial(_inside, within=within, place=place)
    together = list(files)
    if len(files) == 1 and files[0].name in USUAL_FILES:
        overrides = (files[0].parent / name for name in OVERRIDES)
        together += [path for path in overrides if path.is_file()][:1]
    neighbor = or_example(files[0].parent / ENV_FILE)
    own = variables_of(reads(neighbor), place, environment) if neighbor.is_file() else {}
    filling = _Filling({**own, **environment})
    parts = ComposeParts(
        lambda file: filling.fill(_read(reads(file), place)), _merge, files[0].parent
    )
    merged: Any = {}
    for file in together:
        where = f"{place}: {file}"
        part = parts.complete(file, place)
        if filling.lacking:
            names = ", ".join(f"{name} ({why})" for name, why in filling.lacking.items())
            raise UserError(f"{where}: to be set, in the environment or in .env: {names}")
        merged = _merge(merged, part, where)
    services = merged.get("services")
    if not is_table(services):
        raise UserError(f"{place}: {files[0]} has no services, so it is no Compose file")
    return ComposeProject(
        files=tuple(together),
        all_services=services,
        whole=merged,
        variables=filling.variables,
        environment=environment,
        unset=tuple(filling.unset),
        within=within,
        examples=tuple(dict.fromkeys(_examples(services, files[0].parent))),
    )


def _examples(services: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    files = [file for service in services.values() for file in env_files(as_table(service))]
    names = [ENV_FILE, *(str(file.get("path")) for file in files)]
    for path in (folder / name for name in names):
        if (example := or_example(path)) != path:
            yield example


def _inside(file: Path, within: Path | None, place: str) -> Path:
    if within is not None and not (to := file.resolve()).is_relative_to(within.resolve()):
        raise UserError(f"{place}: {file} of a revision leads out of it, to {to}")
    return file


def askable(services: Mapping[str, Any]) -> list[str]:
    """Return the services that clients may ask: those with ports, or all where none has any."""
    published = [name for name, service in services.items() if as_table(service).get("ports")]
    return published or list(services)


def _read(file: Path, place: str) -> dict[str, Any]:
    data = read_yaml(file, place)
    if not is_table(data):
        raise UserError(f"{place}: {file} has no services, so it is no Compose file")
    return data


def variables_of(path: Path, place: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Read a file of NAME=VALUE; raise UserError where there is none that can be read.

    Values may name those before them, and variables of the `environment`.
    """
    variables: dict[str, str] = {}
    filling = _Filling(known := dict(environment))
    for line in _lines(path, place):
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            known[name.strip()] = variables[name.strip()] = _dotenv_value(value.strip(), filling)
    return variables


def _dotenv_value(text: str, filling: "_Filling") -> str:
    """Read a value as Compose does: what isn't in quotes ends before a comment, `'` keeps all."""
    if quoted := _QUOTED.match(text):
        if quoted[1] is not None:
            return quoted[1]
        text = _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), quoted[2])
    else:
        text = _COMMENT.sub("", text)
    return str(filling.fill(text))


def _lines(path: Path, place: str) -> list[str]:
    read = read_named(path, MOST_BYTES, place)
    if b"\0" in read:
        raise UserError(f"{place}: {path} is no file of variables")
    return read.decode(errors="replace").splitlines()


@dataclass(frozen=True)
class _Filling:
    """Fills variables in, wherever a file names them, and remembers those that aren't set."""

    variables: Mapping[str, str]
    unset: dict[str, None] = field(default_factory=dict)
    """Those that are empty then."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Those that the file demands, with its words."""
    _length: list[int] = field(default_factory=lambda: [0])
    """Of what was filled in, all together: values of values can double with each line."""

    def fill(self, value: Any) -> Any:  # noqa: ANN401 (YAML)
        """Return a value with all of its texts filled in."""
        if is_table(value):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        return _VARIABLE.sub(self._count_and_fill, value) if isinstance(value, str) else value

    def _count_and_fill(self, match: re.Match[str]) -> str:
        value = self._variable(match)
        self._length[0] += len(value)
        if self._length[0] > MOST_FILLED:
            raise UserError(
                f"{match[0]:.60}: what variables of Compose files and of .env stand for is more "
                f"than {MOST_FILLED:,} characters by then; have them name fewer others"
            )
        return value

    def _variable(self, match: re.Match[str]) -> str:
        name, how, other = match["plain"] or match["name"], match["how"] or "", match["other"] or ""
        if name is None:
            return "$"
        is_there = name in self.variables and not (how.startswith(":") and not self.variables[name])
        if how.endswith("+"):
            return str(self.fill(other)) if is_there else ""
        if is_there:
            return self.variables[name]
        if how.endswith("?"):
            self.lacking[name] = other
        elif not how:
            self.unset[name] = None
        return str(self.fill(other))


def _merge(earlier: Any, later: Any, where: str, key: str = "") -> Any:  # noqa: ANN401 (YAML)
    """Merge two values, the later of which wins, by "Merge Compose files" of compose-spec.io."""
    if later is None or earlier is None:
        return earlier if later is None else later
    if key in TABLES:
        earlier, later = _table(earlier, key), _table(later, key)
    if key == "build" and isinstance(earlier, Mapping) != isinstance(later, Mapping):
        earlier, later = long_form(earlier, "context"), long_form(later, "context")
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        both = dict(earlier)
        for name, value in later.items():
            both[name] = _merge(both[name], value, where, str(name)) if name in both else value
        return both
    if isinstance(earlier, list) and isinstance(later, list) and key not in REPLACED:
        if key == "volumes":  # of those at one place in the container, the later
            places = {_place(entry) for entry in later}
            return [*(entry for entry in earlier if _place(entry) not in places), *later]
        return [*earlier, *(entry for entry in later if entry not in earlier)]
    if isinstance(earlier, Mapping | list) != isinstance(later, Mapping | list):
        if key in REPLACED:
            return later
        raise UserError(f"{where}: {key} is of another form than in the file before it")
    return later


def _table(value: Any, key: str) -> Any:  # noqa: ANN401
    if not isinstance(value, list):
        return value
    if key == "depends_on":
        return {str(name): {"condition": "service_started"} for name in value}
    pairs = (str(item).partition("=") for item in value)
    return {name: text if equals else None for name, equals, text in pairs}


def _place(volume: Any) -> str:  # noqa: ANN401
    if isinstance(volume, Mapping):
        return str(volume.get("target", ""))
    _, colon, rest = str(volume).partition(":")
    return rest.partition(":")[0] if colon else str(volume)


class _Loader(yaml.SafeLoader):
    """YAML as Compose reads it, by version 1.2: `on` is a word, 22:22 no number, 08 is eight."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, (_pattern, _first) in SCALARS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


_Loader.add_constructor(f"{TAG}int", lambda _, node: int(node.value))


def read_yaml(file: Path, place: str) -> Any:  # noqa: ANN401 (YAML)
    """Read a file's only document; raise UserError, with its line, where it can't be."""
    named = f"{place}: {file}"
    with reading(named):
        text = read_named(file, MOST_BYTES, place).decode()
    try:
        return plain_values(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise UserError(
            f"{place}: {file}{line} is no YAML: {what or 'it is nested too deep'}"
        ) from None


def plain_values(text: str) -> Any:  # noqa: ANN401 (YAML)
    """Return what a document of YAML holds; raise yaml.YAMLError for too much, also by aliases."""
    loader = _Loader(text)
    root = loader.get_single_node()
    if root is None:
        return None
    _check(root)
    return loader.construct_document(root)


def _check(root: Node) -> None:
    """Raise a YAML error for what is too much, and for what isn't a plain value."""
    sizes: dict[int, int] = {}

    def size(node: Node, depth: int) -> int:
        known = sizes.get(id(node))
        if known == 0:
            raise _wrong(node, "it contains itself")
        if known is not None:
            return known
        if depth > DEEPEST:
            raise _wrong(node, "it is nested too deep")
        sizes[id(node)] = 0
        if isinstance(node, ScalarNode):
            _check_scalar(node)
        elif node.tag not in CONTAINERS:
            raise _wrong(node, f"{_short(node.tag)} is no kind of value that is read here")
        total = 1
        for each in _children(node):
            total += size(each, depth + 1)
            if total > MOST_VALUES:
                raise _wrong(node, f"it has more than {MOST_VALUES} values")
        sizes[id(node)] = total
        return total

    size(root, 0)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        for pair in node.value:
            yield from pair


def _check_scalar(node: ScalarNode) -> None:
    shown = repr(node.value[:20])
    if re.search(r"[\0\ud800-\udfff]", node.value):
        raise _wrong(node, f"{shown} has characters that no text has")
    if node.tag == STRING:
        return
    if node.tag not in SCALARS:
        raise _wrong(node, f"{_short(node.tag)} is no kind of value that is read here")
    if not SCALARS[node.tag][0].match(node.value):
        raise _wrong(node, f"{shown} is no {_short(node.tag)}")


def _short(tag: str) -> str:
    return tag.replace(TAG, "!!")


def _wrong(node: Node, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark)
