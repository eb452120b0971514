"""Reads an experiment, and applies what flags set (`--set`, `--vary`), before it is checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from webdyno.config.checks import FACTORS, Checks, Names, check_tables, with_value
from webdyno.config.reading import KeyPath, look_up, nearest, written_value
from webdyno.config.requests import with_contents
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.request import is_of_grpc
from webdyno.core.stack import Site
from webdyno.core.sweep import Point
from webdyno.core.tables import as_list, is_table
from webdyno.core.variant import key_parts, quoted_part

LONGEST_FLAG = 200
"""Letters of a flag that messages show."""
REQUESTS = "requests"
MOST_PARTS = 10

TIME: KeyPath = ("measure", "budget_s")
TIME_IS_LIMIT: KeyPath = ("measure", "budget_is_limit")


class Override(NamedTuple):
    """A setting, and the flag that gave it."""

    key: KeyPath
    value: object
    flag: str

    @property
    def sets(self) -> KeyPath:
        """The setting that it is about, be it given or varied."""
        varied = self.key[0] == FACTORS and len(self.key) == 2
        return key_parts(str(self.key[1])) if varied else self.key


def read_overrides(texts: Iterable[str]) -> list[Override]:
    """Read `--set KEY=VALUE`: dotted keys, values as in TOML, anything else is taken as text.

    A key is one of the experiment, or a setting of a variant: `load.connections`, `nginx.workers`.
    """
    overrides = []
    for text in texts:
        flag = f"--set {text:.{LONGEST_FLAG}}"
        key, equals, value = text.partition("=")
        if not equals or not _is_key(key):
            raise UserError(f"{flag}: should look like KEY=VALUE, such as load.connections=16")
        overrides.append(Override(key_parts(key), written_value(value, flag), flag))
    return overrides


def time_limit(value: object, flag: str) -> list[Override]:
    """Return what `--time` sets: how long is measured, and that it never takes longer."""
    return [Override(key, value if key == TIME else True, flag) for key in (TIME, TIME_IS_LIMIT)]


def factors(texts: Iterable[str]) -> list[Override]:
    """Read `--vary KEY=LEVEL,LEVEL…`: a factor and its levels, values as in TOML."""
    overrides = []
    for text in texts:
        flag = f"--vary {text:.{LONGEST_FLAG}}"
        key, equals, levels = text.partition("=")
        if not equals or not _is_key(key) or not all(levels.split(",")):
            raise UserError(
                f"{flag}: should look like KEY=LEVEL,LEVEL, such as load.connections=1,2,4"
            )
        values = [written_value(level, flag) for level in levels.split(",")]
        overrides.append(Override((FACTORS, key), values, flag))
    return overrides


def with_overrides(data: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
    """Return an experiment's data with other settings; what is set isn't varied any more.

    Raise UserError when two flags are about the same setting: which of them counts would be a
    guess.
    """
    seen: dict[KeyPath, str] = {}
    for given in overrides:
        override = _spell_out(given, data.get("variants", {}))
        if other := seen.get(override.sets):
            raise UserError(f"{override.flag}: {other} is about the same setting; give one of them")
        seen[override.sets] = override.flag
        data = with_value(_without_factor(data, override.sets), *override)
    return _without_paths(data) if (REQUESTS,) in seen else data


def variant_of(override: Override, variants: Iterable[str]) -> str | None:
    """Return the variant that a setting is one of, if any: not all experiments have it."""
    first, *others = _spell_out(override, variants).sets
    return str(others[0]) if first == "variants" and others else None


def _spell_out(override: Override, variants: Iterable[str]) -> Override:
    """Return `nginx.workers`, a setting of a variant, with its whole key."""
    varied = override.key[0] == FACTORS and len(override.key) == 2
    written = str(override.key[1]) if varied else ".".join(map(str, override.key))
    for name in sorted(variants, key=len, reverse=True):
        if written.startswith(f"{name}.") and (setting := written.removeprefix(f"{name}.")):
            if varied:
                key = f"variants.{quoted_part(name)}.settings.{setting}"
                return override._replace(key=(FACTORS, key))
            return override._replace(key=("variants", name, "settings", setting))
    return override


def _without_factor(data: dict[str, Any], key: KeyPath) -> dict[str, Any]:
    if FACTORS not in data:
        return data
    kept = {other: levels for other, levels in data[FACTORS].items() if key_parts(other) != key}
    return {**data, FACTORS: kept}


def _without_paths(data: dict[str, Any]) -> dict[str, Any]:
    """Exclude what an experiment asks for, where flags say something else."""
    data = _without(_without_factor(data, ("load", "paths")), "load", "paths")
    for name in data.get("variants", {}):
        data = _without(
            _without(data, "variants", name, "paths"), "variants", name, "load", "paths"
        )
    return data


def _without(table: dict[str, Any], first: str, *further: str) -> dict[str, Any]:
    """Return a table without a key, which lies in tables of it."""
    if first not in table:
        return table
    if further:
        return {**table, first: _without(table[first], *further)}
    return {key: value for key, value in table.items() if key != first}


def _is_key(key: str) -> bool:
    parts = key_parts(key)
    return key.isprintable() and 0 < len(parts) <= MOST_PARTS and all(parts)


class Source(Protocol):
    """Where an experiment comes from: a file, or a command line."""

    @property
    def data(self) -> dict[str, Any]: ...

    @property
    def folder(self) -> Path: ...

    def place(self, where: KeyPath) -> str:
        """Return the file and line, or the flag, that a value comes from."""


class CommandLine(NamedTuple):
    """An experiment put together from the flags of a command."""

    data: dict[str, Any]
    flags: Mapping[KeyPath, str]
    """By key: the flag or argument that gave it."""

    @property
    def folder(self) -> Path:
        return Path()

    def place(self, where: KeyPath) -> str:
        """Return the flag of a key, or of the nearest table around it."""
        while where and where not in self.flags:
            where = where[:-1]
        return self.flags.get(where, "the command line")


@dataclass(frozen=True)
class Draft:
    """An experiment as it was written, with overrides, before it is checked."""

    source: Source
    data: dict[str, Any]
    origin: Mapping[KeyPath, str]
    """By key: the flag that overrode it."""

    @classmethod
    def of(cls, source: Source, overrides: Sequence[Override]) -> "Draft":
        """Apply overrides; raise UserError for one that is about nothing, and for what is no table.

        From here on its tables are ones, as `ExperimentTables` has them.
        """
        written = check_tables(source.data, source.place)
        origin = {override.key: override.flag for override in overrides}
        draft = cls(source, with_overrides(written, overrides), origin)
        data = _with_protocol_of_calls(with_contents(draft.data, source.folder, draft.place))
        for key, flag in origin.items():
            # It is a slip to set something of a variant that isn't there, unless it gets a stack.
            if key[0] == "variants" and len(key) > 2 and look_up(data, (*key[:2], "stack")) is None:
                known = nearest(str(key[1]), written.get("variants", {}))
                raise UserError(f"{flag}: there is no variant {key[1]!r}; {known}")
        return cls(source, data, origin)

    def place(self, where: KeyPath) -> str:
        """Return the file and line, or the flag, that a value comes from."""
        for depth in range(len(where), 0, -1):
            if where[:depth] in self.origin:
                return self.origin[where[:depth]]
        # What doesn't fit together may do so because of a flag, or for want of a key next to one.
        around = where if any(_inside(key, where) for key in self.origin) else where[:-1]
        flags = [flag for key, flag in self.origin.items() if around and _inside(key, around)]
        return " with ".join([self.source.place(where), *dict.fromkeys(flags)])

    def check(self, names: Names) -> Experiment:
        """Read the experiment, and check it at every combination of its levels.

        Raise UserError, with file and line or with the flag, for unknown keys, stacks, sites and
        settings, for values out of range and for a stack that can't serve the site.
        """
        data = _with_protocol_of_calls(_with_site_defaults(self.data, names))
        data = _with_time_for_streams(data)
        varied = [
            (key, levels)
            for key, levels in data.get(FACTORS, {}).items()
            if levels and key_parts(key)[0] != "variants" and look_up(data, key_parts(key)) is None
        ]
        origin = {**self.origin}
        for key, levels in varied:  # all but settings need not have a default
            origin[key_parts(key)] = self.place((FACTORS, key))
            data = with_value(data, key_parts(key), levels[0], self.place((FACTORS, key)))
        place = Draft(self.source, data, origin).place
        checks = Checks(names, place)
        experiment = checks.experiment(data)
        _check_levels(experiment, data, checks)
        return experiment


def read_experiment(source: Source, overrides: Sequence[Override], names: Names) -> Experiment:
    """Read an experiment with overrides, and check it; raise UserError as `Draft` does."""
    return Draft.of(source, overrides).check(names)


def _inside(key: KeyPath, table: KeyPath) -> bool:
    return key[: len(table)] == table


_PATHS: tuple[KeyPath, ...] = (("load", "paths"), (FACTORS, "load.paths"), ("requests",))
"""Where an experiment says what all its variants are asked for."""


def _with_site_defaults(data: dict[str, Any], names: Names) -> dict[str, Any]:
    """Add the settings that suit the site, and its first path, where there are no others."""
    site = names.sites.get(data.get("site", ""))
    if site is None:
        return data
    has_paths = any(look_up(data, key) is not None for key in _PATHS)
    if "variants" in data:
        variants = {
            name: _with_suggested_settings(
                variant if has_paths else _with_path(variant, names), site, names
            )
            for name, variant in data["variants"].items()
        }
        data = {**data, "variants": variants}
    its: dict[str, Any] = {"requests": site.requests, "load": site.suggests.get("load", {})}
    its = with_contents(its, site.folder, lambda _: str(site.folder))
    if site.requests and not has_paths:
        data = {**data, "requests": its["requests"]}
    load = {"paths": [site.ready_path], **its["load"]}
    if data.get("requests"):
        del load["paths"]
    suggested = {"load": load, "measure": site.suggests.get("measure", {})}
    return data | {table: {**keys, **data.get(table, {})} for table, keys in suggested.items()}


def _with_protocol_of_calls(data: dict[str, Any]) -> dict[str, Any]:
    """Have gRPC spoken over HTTP/2, without TLS where nothing is said of it."""
    load, requests = data.get("load", {}), data.get("requests") or []
    if "protocol" in load or "load.protocol" in data.get(FACTORS, {}):
        return data
    if not any(is_of_grpc(request.get("method")) for request in requests):
        return data
    return {**data, "load": {**load, "protocol": "h2c"}}


STREAM_TIMEOUT_S = 60.0
"""A language model takes so long for some hundred tokens."""


def _with_time_for_streams(data: dict[str, Any]) -> dict[str, Any]:
    """Give streamed responses more time than others have, where nothing is said of it."""
    load, requests = data.get("load", {}), data.get("requests", [])
    if not is_table(load) or "timeout_s" in load:
        return data
    if not any(request.get("events") for request in filter(is_table, as_list(requests))):
        return data
    return {**data, "load": {**load, "timeout_s": STREAM_TIMEOUT_S}}


def _with_suggested_settings(variant: dict[str, Any], site: Site, names: Names) -> dict[str, Any]:
    """Add the settings that suit the site, of which a variant's stack has such."""
    suggested = site.suggests.get("settings", {})
    stack = names.stacks.get(variant.get("stack", ""))
    if stack is None or not suggested:
        return variant
    known = stack.exposed_settings()
    settings = {name: value for name, value in suggested.items() if name in known}
    return {**variant, "settings": {**settings, **variant.get("settings", {})}}


def _with_path(variant: dict[str, Any], names: Names) -> dict[str, Any]:
    """Add the first path of a site of its own, where the variant has no other ones."""
    site = names.sites.get(variant.get("site") or "")
    if site is None or "paths" in variant or "paths" in variant.get("load", {}):
        return variant
    return {**variant, "paths": [site.ready_path]}


def _check_levels(experiment: Experiment, data: dict[str, Any], checks: "Checks") -> None:
    """Check each level alone, to blame its factor, and then all of them together."""
    varied = experiment.factors
    for key, levels in varied.items():
        for level in levels:
            checks.blaming(checks.place((FACTORS, key))).at_levels(data, {key: level})
    if len(varied) > 1:
        for number, combination in enumerate(product(*varied.values())):
            levels_there = dict(zip(varied, combination, strict=True))
            there = Point(number=number, levels=levels_there)
            checks.blaming(f"at {there.label}").at_levels(data, levels_there)
