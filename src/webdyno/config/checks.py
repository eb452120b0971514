"""Whether an experiment fits the catalogue: its stacks, sites, settings and load generators."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from webdyno.config.calls import check_calls
from webdyno.config.reading import KeyPath, PlaceOf, build, nearest, shown_value, written_value
from webdyno.config.requests import check_rows
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level
from webdyno.core.load import Load
from webdyno.core.patterns import check_ignored
from webdyno.core.setting import Setting, SettingValue
from webdyno.core.stack import Site, Stack
from webdyno.core.tables import is_table
from webdyno.core.testbed import TestbedSettings
from webdyno.core.variant import Variant, changed_data, key_parts, with_key
from webdyno.load.interface import generator_fault, programs

FACTORS = "factors"
PROTOCOL = "protocol"
"""The setting that says what clients speak with a server: the load's protocol decides it."""


class WrittenTable(BaseModel):
    """A table as it is written: what is in it is of the right kind, and checked later."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)


class VariantTable(WrittenTable):
    """`[variants.NAME]`."""

    stack: str = ""
    site: str | None = None
    load: dict[str, Any] = {}
    settings: dict[str, Any] = {}


class LoadTable(WrittenTable):
    """`[load]`."""

    replay_file: str | None = None
    proto_file: str | None = None


class RequestTable(WrittenTable):
    """`[[requests]]`, `[[login]]`."""

    headers: dict[str, Any] = {}
    form: dict[str, Any] | None = None
    body_file: str | None = None
    json_file: str | None = None


class ValuesTable(WrittenTable):
    """`[values.NAME]`."""

    file: str | None = None
    sha256: str | None = None


class ExperimentTables(WrittenTable):
    """What is looked into before an experiment is complete, and can be checked."""

    site: str = ""
    load: LoadTable = LoadTable()
    measure: dict[str, Any] = {}
    testbed: dict[str, Any] = {}
    factors: dict[str, list[Any]] = {}
    variants: dict[str, VariantTable] = {}
    values: dict[str, ValuesTable] = {}
    login: list[RequestTable] = []
    requests: list[RequestTable] = []


def check_tables(data: dict[str, Any], place: PlaceOf) -> dict[str, Any]:
    """Return an experiment's data; raise UserError where a table of it is none."""
    build(ExperimentTables, data, place)
    return data


def with_value(data: dict[str, Any], key: KeyPath, value: object, flag: str) -> dict[str, Any]:
    """Return an experiment's data with another value of a key; raise UserError if it can't be."""
    table = data
    for part in key[:-1]:
        table = table.get(str(part), {})
        if not is_table(table):
            raise UserError(f"{flag}: {part} holds a value, no further keys")
    return check_tables(with_key(data, key, value), lambda _: flag)


def fits(stack: Stack, site: Site) -> bool:
    return site.served_by(stack.serves)


def check_fit(stack: Stack, site: Site, stacks: Iterable[Stack], place: str) -> None:
    """Raise UserError, with the stacks that would do, when a stack can't serve a site."""
    if lacks := site.lacks(stack.serves):
        fitting = [other.name for other in stacks if fits(other, site) and not other.is_own]
        raise UserError(
            f"{place}: stack {stack.name} can't serve site {site.name}, which needs "
            f"{' and '.join(lacks)}; stacks that can: {', '.join(fitting) or 'none'}"
        )


def settings_of(stack: Stack, site: Site | None) -> dict[str, Setting]:
    """The settings of a stack that serves a site, with those of the site and its data services."""
    served = stack.with_services(site.services) if site else stack
    own = {name: target.setting for name, target in served.exposed_settings().items()}
    return own | (site.settings if site else {})


def check_setting(
    stack: Stack,
    site: Site | None,
    name: str,
    value: SettingValue,
    place: str,
    *,
    is_alone: bool = False,
) -> None:
    """Raise UserError when stack and site have no such setting, or not this value of it.

    `is_alone`: there is no load, so that the protocol is a setting like others.
    """
    settings = settings_of(stack, site)
    if name == PROTOCOL and name in settings and not is_alone:
        raise UserError(f"{place}: clients must speak it as well; give load.protocol instead")
    if name not in settings:
        raise UserError(
            f"{place}: stack {stack.name} has no setting {name!r}; {nearest(name, settings)}"
        )
    if fault := settings[name].fault(value):
        raise UserError(f"{place}: {name} {fault}, not {shown_value(value)}")


def check_protocol(
    stack: Stack, site: Site, protocol: str, stacks: Mapping[str, Stack], place: PlaceOf
) -> None:
    """Raise UserError, with stacks that would do, when a stack can't speak a load's protocol."""
    if _speaks(stack, site, protocol):
        return
    front = stack.services[stack.front].service
    setting = front.settings.get(PROTOCOL)
    if front.own and setting:
        raise UserError(
            f"{place(('load', 'protocol'))}: {front.title} can't be asked over {protocol} but over "
            f"{setting.range()}"
        )
    if protocol != "http":
        able = [
            each.name
            for each in stacks.values()
            if _speaks(each, site, protocol) and not each.is_own
        ]
        raise UserError(
            f"{place(('load', 'protocol'))}: stack {stack.name} can't be asked over {protocol} "
            f"here; stacks that can: {', '.join(able) or 'none'}"
        )


def _speaks(stack: Stack, site: Site, protocol: str) -> bool:
    target = stack.exposed_settings().get(PROTOCOL)
    spoken = protocol == "http" if target is None else target.setting.fault(protocol) is None
    return fits(stack, site) and spoken


def read_settings(
    stack: Stack, texts: Iterable[str], site: Site | None = None
) -> dict[str, SettingValue]:
    """Read `SETTING=VALUE` for a stack, values as in TOML; raise UserError for wrong ones."""
    settings: dict[str, SettingValue] = {}
    for setting in texts:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: should look like SETTING=VALUE, such as workers=2")
        flag = f"--set {setting}"
        value = written_value(text, flag)
        if not isinstance(value, SettingValue):
            raise UserError(f"{flag}: the value of a setting is a number, word, true or false")
        if name in settings:
            raise UserError(f"{flag}: {name} is set twice; give it once")
        check_setting(stack, site, name, value, flag, is_alone=True)
        settings[name] = value
    return settings


def check_headers(
    experiment: Experiment, stacks: Mapping[str, Stack], sites: Mapping[str, Site], place: PlaceOf
) -> None:
    """Raise UserError where variants differ by a setting that no request lets them feel."""
    for variant_name, variant in experiment.variants.items():
        requests = experiment.requests_of(variant_name)
        headers = [
            experiment.load_of(variant_name).headers,
            *(request.headers for request in requests),
        ]
        sent = {name.lower() for each in headers for name in each}
        settings = settings_of(stacks[variant.stack], sites[experiment.site_of(variant_name)])
        for name, value in variant.settings.items():
            header = settings[name].needs_header
            others = (other.settings.get(name) for other in experiment.variants.values())
            if header is None or header.lower() in sent or value == settings[name].default:
                continue
            if any(other != value for other in others):
                raise UserError(
                    f"{place(('variants', variant_name, 'settings', name))}: {name} makes no "
                    f"difference to requests without {header}, and the load sends none; give it "
                    "one with "
                    f'headers.{header} = "…" under [load], or --set load.headers.{header}=…'
                )


class Names(Protocol):
    """What an experiment is checked against: the catalogue."""

    @property
    def stacks(self) -> Mapping[str, Stack]: ...

    @property
    def sites(self) -> Mapping[str, Site]: ...


@dataclass(frozen=True)
class Checks:
    """Builds an experiment of data, and checks it by the catalogue and the generators."""

    names: Names
    place: PlaceOf

    def blaming(self, place: str) -> "Checks":
        """Blame the same place for whatever is wrong."""
        return Checks(self.names, lambda _: place)

    def at_levels(self, data: dict[str, Any], levels: Mapping[str, Level]) -> None:
        """Check the experiment with these levels of its factors."""
        changed = {**data, FACTORS: {}}
        for key, level in levels.items():
            changed = with_value(changed, key_parts(key), level, self.place((FACTORS, key)))
        self.experiment(changed)

    def experiment(self, data: dict[str, Any]) -> Experiment:
        """Build the experiment, and check it."""
        experiment = build(Experiment, data, self.place)
        self._check_generators(experiment)
        self._check_awake(experiment)
        self._check_ignored(experiment)
        for name, variant in experiment.variants.items():
            self._check_changes(("variants", name), name, experiment)
            self._check_variant(("variants", name), variant, experiment)
        if fault := generator_fault(experiment):
            raise UserError(f"{self.place(('generator',))}: {fault}")
        check_headers(experiment, self.names.stacks, self.names.sites, self.place)
        if not experiment.factors:  # else it is checked at their levels
            check_rows(experiment, self.place)
        check_calls(experiment, os.environ, self.place)
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
            places.append((FACTORS, "testbed.keep_awake"))
        if places:
            raise UserError(
                f"{self.place(places[0])}: CPUs are kept awake for all or for none; set it under "
                "[testbed] only"
            )

    def _check_ignored(self, experiment: Experiment) -> None:
        for number, what in enumerate(experiment.ignore):
            try:
                check_ignored(what)
            except ValueError as error:
                raise UserError(f"{self.place(('ignore', number))}: {error}") from None

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
