"""Reads an experiment, applies overrides from the command line, checks it against the catalogue."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from webdyno.definitions.fit import check_fit, check_knob
from webdyno.definitions.near import nearest
from webdyno.definitions.override import Override, dotted, with_value
from webdyno.definitions.refusal import Place, build
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.mistake import Mistake
from webdyno.model.site import Site
from webdyno.model.stack import Stack


class Names(Protocol):
    """What an experiment is checked against: the catalogue."""

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """Stacks by name."""

    @property
    def sites(self) -> Mapping[str, Site]:
        """Sites by name."""


class Source(Protocol):
    """Where an experiment comes from: a file, or a command line."""

    @property
    def data(self) -> dict[str, Any]:
        """The experiment as TOML has it."""

    def place(self, where: KeyPath) -> str:
        """Name the file and line, or the flag, that a value comes from."""


class CommandLine(NamedTuple):
    """An experiment put together from the flags of a command."""

    data: dict[str, Any]
    flags: Mapping[KeyPath, str]
    """By key: the flag or argument that gave it."""

    def place(self, where: KeyPath) -> str:
        """Name the flag of a key, or of the nearest table around it."""
        while where and where not in self.flags:
            where = where[:-1]
        return self.flags.get(where, "the command line")


def read_experiment(source: Source, overrides: Sequence[Override], names: Names) -> Experiment:
    """Read an experiment with overrides, and check it at each level of each of its factors.

    Raise Mistake, with file and line or with the flag, for unknown keys, stacks, sites and knobs,
    for values out of range and for a stack that can't serve the site.
    """
    origin = {override.key: override.flag for override in overrides}
    data = source.data
    for override in overrides:
        data = with_value(data, *override)

    def place(where: KeyPath) -> str:
        for depth in range(len(where), 0, -1):
            if where[:depth] in origin:
                return origin[where[:depth]]
        return source.place(where)

    _check_arm_names(source.data, data, origin)
    experiment = _checked(data, place, names)
    for key, levels in experiment.factors.items():
        here = place(("factors", key))
        for level in levels:
            changed = with_value(data | {"factors": {}}, dotted(key), level, here)
            _checked(changed, _always(here), names)
    return experiment


def _always(place: str) -> Place:
    """Blame the same place for whatever is wrong."""
    return lambda _: place


def _checked(data: dict[str, Any], place: Place, names: Names) -> Experiment:
    experiment = build(Experiment, data, place)
    for name, arm in experiment.arms.items():
        _check_arm(("arms", name), arm, experiment, names, place)
    for number, asked in enumerate(experiment.load.paths):
        _check_path(asked, place(("load", "paths", number)))
    return experiment


def _check_arm_names(
    written: dict[str, Any], data: dict[str, Any], origin: Mapping[KeyPath, str]
) -> None:
    """An override for an arm that isn't there is a slip, unless it gives the arm a stack."""
    arms = data.get("arms", {})
    for key, override in origin.items():
        if key[0] == "arms" and len(key) > 2 and "stack" not in arms[key[1]]:
            known = nearest(str(key[1]), written.get("arms", {}))
            raise Mistake(f"{override}: there is no arm {key[1]!r}; {known}")


def _check_arm(
    where: KeyPath, arm: Arm, experiment: Experiment, names: Names, place: Place
) -> None:
    if arm.stack not in names.stacks:
        raise Mistake(
            f"{place((*where, 'stack'))}: there is no stack {arm.stack!r}; "
            f"{nearest(arm.stack, names.stacks)}"
        )
    site_name = arm.site or experiment.site
    site_place = place((*where, "site") if arm.site else ("site",))
    if site_name not in names.sites:
        raise Mistake(
            f"{site_place}: there is no site {site_name!r}; {nearest(site_name, names.sites)}"
        )
    stack, site = names.stacks[arm.stack], names.sites[site_name]
    if stack.protocol != experiment.protocol:
        raise Mistake(
            f"{place((*where, 'stack'))}: stack {stack.name} speaks {stack.protocol}, generator "
            f"{experiment.generator} speaks {experiment.protocol}"
        )
    check_fit(stack, site, names.stacks.values(), place((*where, "stack")))
    for name, value in arm.knobs.items():
        check_knob(stack, site, name, value, place((*where, "knobs", name)))
    for number, path in enumerate(arm.paths or []):
        _check_path(path, place((*where, "paths", number)))


def _check_path(path: str, at: str) -> None:
    """A path need not be listed by the site, which then answers as it likes: the run will tell."""
    if not path.startswith("/") or any(c.isspace() or not c.isprintable() for c in path):
        raise Mistake(f"{at}: a path starts with / and has no spaces, unlike {path!r}")
