"""Reads an experiment, applies overrides from the command line, checks it against the catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from webdyno.config.compatibility import check_fit, check_headers, check_protocol, check_setting
from webdyno.config.override import FACTORS, Override, overridden, with_value
from webdyno.config.reading import KeyPath, PlaceOf, build, nearest
from webdyno.config.requests.entries import with_contents
from webdyno.config.requests.rows import check_rows
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level
from webdyno.core.load import Load
from webdyno.core.stack import Site, Stack
from webdyno.core.sweep import Point
from webdyno.core.testbed import TestbedSettings
from webdyno.core.variant import Variant, changed_data, key_parts
from webdyno.load.interface import generator_fault, programs


class Names(Protocol):
    """What an experiment is checked against: the catalogue."""

    @property
    def stacks(self) -> Mapping[str, Stack]: ...

    @property
    def sites(self) -> Mapping[str, Site]: ...


class Source(Protocol):
    """Where an experiment comes from: a file, or a command line."""

    @property
    def data(self) -> dict[str, Any]: ...

    @property
    def folder(self) -> Path: ...

    def place(self, where: KeyPath) -> str:
        """Name the file and line, or the flag, that a value comes from."""


class CommandLine(NamedTuple):
    """An experiment put together from the flags of a command."""

    data: dict[str, Any]
    flags: Mapping[KeyPath, str]
    """By key: the flag or argument that gave it."""

    @property
    def folder(self) -> Path:
        return Path()

    def place(self, where: KeyPath) -> str:
        """Name the flag of a key, or of the nearest table around it."""
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
        """Apply overrides; raise UserError for one that is about nothing."""
        origin = {override.key: override.flag for override in overrides}
        written = cls(source, overridden(source.data, overrides), origin)
        data = with_contents(written.data, source.folder, written.place)
        _check_variant_names(source.data, data, origin)
        return cls(source, data, origin)

    def place(self, where: KeyPath) -> str:
        """Name the file and line, or the flag, that a value comes from."""
        for depth in range(len(where), 0, -1):
            if where[:depth] in self.origin:
                return self.origin[where[:depth]]
        # What doesn't fit together may do so because of a flag, or for want of a key next to one.
        around = where if any(_inside(key, where) for key in self.origin) else where[:-1]
        flags = [flag for key, flag in self.origin.items() if around and _inside(key, around)]
        return " with ".join([self.source.place(where), *dict.fromkeys(flags)])

    def checked(self, names: Names) -> Experiment:
        """Read the experiment, and check it at every combination of its levels.

        Raise UserError, with file and line or with the flag, for unknown keys, stacks, sites and
        settings, for values out of range and for a stack that can't serve the site.
        """
        data = _with_site_defaults(self.data, names)
        varied = _only_varied(data)
        only_varied: dict[KeyPath, str] = {
            key_parts(key): self.place((FACTORS, key)) for key, _ in varied
        }
        for key, levels in varied:
            data = with_value(data, key_parts(key), levels[0], self.place((FACTORS, key)))
        place = Draft(self.source, data, {**self.origin, **only_varied}).place
        checks = _Checks(names, place)
        experiment = checks.experiment(data)
        _check_levels(experiment, data, checks)
        return experiment


def read_experiment(source: Source, overrides: Sequence[Override], names: Names) -> Experiment:
    """Read an experiment with overrides, and check it; raise UserError as `Draft` does."""
    return Draft.of(source, overrides).checked(names)


def _inside(key: KeyPath, table: KeyPath) -> bool:
    return key[: len(table)] == table


_PATHS: tuple[KeyPath, ...] = (("load", "paths"), (FACTORS, "load.paths"), ("requests",))
"""Where an experiment says what all its variants are asked for."""


def _with_site_defaults(data: dict[str, Any], names: Names) -> dict[str, Any]:
    """Add the settings that suit the site, and its first path, where there are no others."""
    site = _site_in(data, names)
    if site is None:
        return data
    data = _with_settings_of_site(_with_paths_of_variants(data, names), site, names)
    if site.requests and not any(_has(data, key) for key in _PATHS):
        given = with_contents({"requests": site.requests}, site.folder, lambda _: str(site.folder))
        data = {**data, **given}
    load = {"paths": [site.ready_path], **site.suggests.get("load", {})}
    if data.get("requests"):
        del load["paths"]
    for table, suggested in (("load", load), ("measure", site.suggests.get("measure", {}))):
        given = data.get(table, {})
        if isinstance(given, dict):
            data = {**data, table: {**suggested, **given}}
    return data


def _with_settings_of_site(data: dict[str, Any], site: Site, names: Names) -> dict[str, Any]:
    """Give variants the settings that suit the site, where they have such and none is given."""
    suggested, variants = site.suggests.get("settings"), data.get("variants")
    if not suggested or not isinstance(variants, dict):
        return data
    return {
        **data,
        "variants": {
            name: _suited(variant, suggested, names) for name, variant in variants.items()
        },
    }


def _suited(variant: object, suggested: Mapping[str, object], names: Names) -> object:
    stack = names.stacks.get(str(variant.get("stack"))) if isinstance(variant, dict) else None
    if stack is None or not isinstance(variant, dict):
        return variant
    given = variant.get("settings", {})
    known = {name: value for name, value in suggested.items() if name in stack.exposed_settings()}
    return {**variant, "settings": {**known, **given}} if isinstance(given, dict) else variant


def _site_in(table: dict[str, Any], names: Names) -> Site | None:
    name = table.get("site")
    return names.sites.get(name) if isinstance(name, str) else None


def _with_paths_of_variants(data: dict[str, Any], names: Names) -> dict[str, Any]:
    """Give variants that have a site of their own its first path, where nobody names other ones."""
    variants = data.get("variants")
    if not isinstance(variants, dict) or any(_has(data, key) for key in _PATHS):
        return data
    for name, variant in variants.items():
        site = _site_in(variant, names) if isinstance(variant, dict) else None
        if site and not _has(variant, ("paths",)) and not _has(variant, ("load", "paths")):
            variants = {**variants, name: {**variant, "paths": [site.ready_path]}}
    return {**data, "variants": variants}


def _only_varied(data: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """Give factors that nothing is said of elsewhere; all but settings need not have a default."""
    varied = data.get(FACTORS)
    return [
        (key, levels)
        for key, levels in (varied if isinstance(varied, dict) else {}).items()
        if isinstance(levels, list) and levels
        if key_parts(key)[0] != "variants" and not _has(data, key_parts(key))
    ]


def _has(data: dict[str, Any], key: KeyPath) -> bool:
    table: Any = data
    for part in key:
        if not isinstance(table, dict) or part not in table:
            return False
        table = table[part]
    return True


def _check_levels(experiment: Experiment, data: dict[str, Any], checks: "_Checks") -> None:
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


@dataclass(frozen=True)
class _Checks:
    """Builds an experiment of data, and checks it by the catalogue and the generators."""

    names: Names
    place: PlaceOf

    def blaming(self, place: str) -> "_Checks":
        """Blame the same place for whatever is wrong."""
        return _Checks(self.names, lambda _: place)

    def at_levels(self, data: dict[str, Any], levels: Mapping[str, Level]) -> None:
        changed = {**data, FACTORS: {}}
        for key, level in levels.items():
            changed = with_value(changed, key_parts(key), level, self.place((FACTORS, key)))
        self.experiment(changed)

    def experiment(self, data: dict[str, Any]) -> Experiment:
        experiment = build(Experiment, data, self.place)
        self._check_generators(experiment)
        self._check_awake(experiment)
        for name, variant in experiment.variants.items():
            self._check_changes(("variants", name), name, experiment)
            self._check_variant(("variants", name), variant, experiment)
        if fault := generator_fault(experiment):
            raise UserError(f"{self.place(('generator',))}: {fault}")
        check_headers(experiment, self.names.stacks, self.names.sites, self.place)
        if not experiment.factors:  # else it is checked at their levels
            check_rows(experiment, self.place)
        return experiment

    def _check_changes(self, where: KeyPath, name: str, experiment: Experiment) -> None:
        """Check what a variant has of its own under load and testbed."""
        variant = experiment.variants[name]

        def within(table: str) -> PlaceOf:
            return lambda inner: self.place((*where, table, *inner))

        generators = experiment.load_with.get(experiment.generator, {})
        with_generator = build(
            Load,
            changed_data(experiment.load, generators),
            lambda inner: self.place(("load_with", experiment.generator, *inner)),
        )
        if variant.load.get("loop", with_generator.loop) != with_generator.loop:
            raise UserError(
                f"{within('load')(('loop',))}: a closed loop asks how fast a server can be, an "
                "open one how it does at a given rate; the two can't be compared. Give all "
                "variants the same loop"
            )
        build(Load, changed_data(with_generator, variant.load_changes), within("load"))
        build(TestbedSettings, changed_data(experiment.testbed, variant.testbed), within("testbed"))

    def _check_awake(self, experiment: Experiment) -> None:
        """CPUs that are kept awake are so for all variants and points."""
        places: list[KeyPath] = [
            ("variants", name, "testbed", "keep_awake")
            for name, variant in experiment.variants.items()
            if "keep_awake" in variant.testbed
        ]
        if "testbed.keep_awake" in experiment.factors:
            places.append(("factors", "testbed.keep_awake"))
        if places:
            raise UserError(
                f"{self.place(places[0])}: CPUs are kept awake for all or for none; set it under "
                "[testbed] only"
            )

    def _check_generators(self, experiment: Experiment) -> None:
        named: dict[KeyPath, str] = {("generator",): experiment.generator}
        named |= {("load_with", name): name for name in experiment.load_with}
        for where, name in named.items():
            if name not in programs():
                raise UserError(
                    f"{self.place(where)}: there is no load generator {name!r}; "
                    f"{nearest(name, programs())}"
                )

    def _check_variant(self, where: KeyPath, variant: Variant, experiment: Experiment) -> None:
        names, place = self.names, self.place
        if variant.stack not in names.stacks:
            raise UserError(
                f"{place((*where, 'stack'))}: there is no stack {variant.stack!r}; "
                f"{nearest(variant.stack, names.stacks)}"
            )
        site_name = experiment.site_of(str(where[-1]))
        site_place = place((*where, "site") if variant.site else ("site",))
        if site_name not in names.sites:
            raise UserError(
                f"{site_place}: there is no site {site_name!r}; {nearest(site_name, names.sites)}"
            )
        stack, site = names.stacks[variant.stack], names.sites[site_name]
        spoken = programs()[experiment.generator].protocol
        if stack.protocol != spoken:
            raise UserError(
                f"{place((*where, 'stack'))}: stack {stack.name} speaks {stack.protocol}, "
                f"generator {experiment.generator} speaks {spoken}"
            )
        check_fit(stack, site, names.stacks.values(), place((*where, "stack")))
        check_protocol(
            stack, site, experiment.load_of(str(where[-1])).protocol, names.stacks, place
        )
        for name, value in variant.settings.items():
            check_setting(stack, site, name, value, place((*where, "settings", name)))


def _check_variant_names(
    written: dict[str, Any], data: dict[str, Any], origin: Mapping[KeyPath, str]
) -> None:
    """An override for a variant that isn't there is a slip, unless it gives the variant a stack."""
    variants = written.get("variants")
    for key, override in origin.items():
        if key[0] == "variants" and len(key) > 2 and not _has(data, (*key[:2], "stack")):
            known = nearest(str(key[1]), variants if isinstance(variants, dict) else [])
            raise UserError(f"{override}: there is no variant {key[1]!r}; {known}")
