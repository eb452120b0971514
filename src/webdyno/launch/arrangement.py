"""Systems that are named on the spot: the experiment that is made of them.

They may be the user's own, which becomes a part of the catalogue; so may variants of a file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from webdyno.config import Catalogue, CommandLine, Draft, Override, time_limit
from webdyno.config.experiment import TIME, TIME_IS_LIMIT, Source
from webdyno.config.reading import KeyPath, TomlFile, build
from webdyno.core.base import Model
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load, has_users
from webdyno.core.metrics import INSTRUCTIONS
from webdyno.core.question import FEWEST_IN_RACE, RANKING
from webdyno.core.registry import question_keys
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Values
from webdyno.core.stack import Site, Stack
from webdyno.core.tables import as_list, as_table, table
from webdyno.launch.caller import Caller
from webdyno.launch.consent import provide, refuse_own_systems
from webdyno.launch.foreign import agree_to_use, know_as_yours, refuse_commands
from webdyno.launch.sending import project_around
from webdyno.systems.kinds import LONGEST_NAME, NamedSystem, variant_names

USUAL_OBJECTIVES = ("p99<50ms",)
"""Of a search for a capacity."""


class Arrangement(NamedTuple):
    """An experiment that can be measured."""

    name: str
    """The run's folder is named like it."""
    experiment: Experiment
    catalogue: Catalogue
    """The one that all of its variants are in."""


@dataclass(frozen=True)
class AskedSystems:
    """What systems that are named on the spot serve, and what they are asked for."""

    site: str | None = None
    """What all of them serve; else the first that all can serve."""
    paths: Sequence[str] = ()
    """The paths that are requested; else the site's first."""
    own: Mapping[str, object] = field(default_factory=dict)
    """Keys of the variants of systems of the user's own, such as `dir`."""
    load: Mapping[str, object] = field(default_factory=dict)
    """What is said of the load next to that."""
    traffic: str = ""
    """The flags that give requests, if any do."""
    overrides: Sequence[Override] = ()

    def with_time_s(self, time_s: float | None) -> "AskedSystems":
        """Return it with another time to measure, if one is given."""
        if time_s is None:
            return self
        kept = self.without_time().overrides
        return replace(self, overrides=[*kept, *time_limit(time_s, "--time")])

    def without_time(self) -> "AskedSystems":
        """Return it without a time to measure."""
        times = (TIME, TIME_IS_LIMIT)
        return replace(
            self, overrides=[override for override in self.overrides if override.key not in times]
        )


def checked_with_own(
    draft: Draft, catalogue: Catalogue, folder: Path, caller: Caller, *, fresh: bool = False
) -> tuple[Experiment, Catalogue]:
    """Return an experiment, checked, and the catalogue that all of its variants are in.

    `folder` is where relative paths begin; `fresh` has revisions built again. What you wrote
    yourself needs no other yes. What has to be installed for it does, and so do catalogs and what a
    run kept, which may be somebody else's: before anything is built of it.
    """
    _check_counted(draft)
    agree_to_use(catalogue, caller, _kept_file(draft.source))
    resolved, joined = _resolve_own(draft, catalogue, folder, caller, fresh=fresh)
    experiment = resolved.check(joined)
    refuse_commands(experiment, joined, caller)
    know_as_yours(experiment, caller)
    return experiment, joined


def _kept_file(source: Source) -> TomlFile | None:
    """Return an experiment's file where a run kept it."""
    from webdyno.measure.repeat import is_kept

    return source if isinstance(source, TomlFile) and is_kept(source.folder) else None


def _check_counted(draft: Draft) -> None:
    """Refuse instructions where they can't be counted, before anything is built.

    Hosts of a cluster look by themselves.
    """
    measure, testbed = (as_table(draft.data.get(key)) for key in ("measure", "testbed"))
    wanting: dict[KeyPath, bool] = {
        (key, name, INSTRUCTIONS): INSTRUCTIONS in as_table(limits)
        for key in question_keys()
        for name, limits in as_table(draft.data.get(key)).items()
    }
    wanting |= {
        ("measure", "decide_on"): measure.get("decide_on") == INSTRUCTIONS,
        ("measure", "count_instructions"): measure.get("count_instructions") is True,
    }
    place = next((draft.place(where) for where, is_wanted in wanting.items() if is_wanted), None)
    if place is not None and testbed.get("kind") != "cluster":
        from webdyno.probes.instructions import check_counted

        check_counted(place)


def _resolve_own(
    draft: Draft,
    catalogue: Catalogue,
    folder: Path,
    caller: Caller,
    *,
    fresh: bool = False,
    within: Path | None = None,
) -> tuple[Draft, Catalogue]:
    """Make own systems parts of the catalogue, built; if they may be started at all."""
    from webdyno.systems.variants import resolve

    refuse_own_systems(draft.data, caller)
    provide_needs = partial(provide, [], [], caller=caller)
    return resolve(
        draft, catalogue, folder, caller.notify, provide_needs, fresh=fresh, within=within
    )


@dataclass(frozen=True)
class OneSystem:
    """A stack, perhaps a system of the user's own, and what it is asked for."""

    stack: Stack
    catalogue: Catalogue
    """The one that it is in."""
    load: Load
    requests: Sequence[WrittenRequest]
    """None where nothing is known of what it serves."""
    login: Sequence[WrittenRequest] = ()
    values: Mapping[str, Values] = field(default_factory=dict)

    @property
    def asked(self) -> list[Model]:
        """All that is said of what it is asked for."""
        return [self.load, *self.requests, *self.login, *self.values.values()]

    @property
    def has_users(self) -> bool:
        """Whether who asks logs in, or has values."""
        return has_users(self.login, self.requests, self.values)


def one_system(
    name: str,
    own: Mapping[str, object],
    catalogue: Catalogue,
    load: Mapping[str, object],
    overrides: Sequence[Override],
    caller: Caller,
    within: Path | None = None,
) -> OneSystem:
    """Look one system up; what is asked of a revision stands in its `webdyno.toml`, unless said.

    `own` are keys of its variant, where it is one of the user's own; `within` is all that its
    containers may reach of this machine.
    """
    variants = {name: {"stack": name, **own}}
    spoken = CommandLine({"variants": variants, "load": dict(load)}, {("variants", name): name})
    draft = _draft(spoken, [name], own, overrides, caller)
    agree_to_use(catalogue, caller)
    resolved, joined = _resolve_own(draft, catalogue, Path.cwd(), caller, within=within)
    stack = joined.stack(resolved.data["variants"][name]["stack"])
    made = build(Load, resolved.data.get("load", {}), lambda where: draft.place(("load", *where)))
    requests = _requests(resolved, made, said="paths" in load)
    login = _written(resolved, "login")
    return OneSystem(stack, joined, made, requests, login, _values(resolved))


def _draft(
    spoken: CommandLine,
    systems: Sequence[str],
    own: Mapping[str, object],
    overrides: Sequence[Override],
    caller: Caller,
) -> Draft:
    """Revisions are asked for what the project around them says."""
    from webdyno.systems.kinds import is_revision
    from webdyno.systems.project import ProjectSource

    folder = Path(str(own.get("dir", ""))).absolute()
    project = project_around(folder, caller) if any(map(is_revision, systems)) else None
    return Draft.of(ProjectSource(spoken, project) if project else spoken, overrides)


def _requests(draft: Draft, load: Load, *, said: bool) -> list[WrittenRequest]:
    """The paths that were said, else requests, else all paths."""
    written = [] if said else _written(draft, "requests")
    return written or [WrittenRequest(path=path) for path in load.paths]


def _written(draft: Draft, key: str) -> list[WrittenRequest]:
    return [
        build(WrittenRequest, table, lambda where, n=number: draft.place((key, n, *where)))  # type: ignore[misc]
        for number, table in enumerate(as_list(draft.data.get(key)))
    ]


def _values(draft: Draft) -> dict[str, Values]:
    return {
        name: build(Values, keys, lambda where, n=name: draft.place(("values", n, *where)))  # type: ignore[misc]
        for name, keys in table(draft.data, "values").items()
    }


def flag_of(key: str) -> str:
    """Return the flag of a variant's key."""
    short = {"environment": "env", "services": "service", "backends": "backend"}
    return f"--{short.get(key, key.replace('_', '-'))}"


NOTHING_MORE = CommandLine({}, {})


def race_of(systems: Sequence[str]) -> CommandLine:
    """Return the key that ranks systems where there are too many for one verdict."""
    if len(systems) < FEWEST_IN_RACE:
        return NOTHING_MORE
    return CommandLine({RANKING: {}}, {(RANKING,): "compare"})


def arrange(
    systems: Sequence[str],
    asked: AskedSystems,
    catalogue: Catalogue,
    caller: Caller,
    more: CommandLine = NOTHING_MORE,
    names: Sequence[str] = (),
) -> Arrangement:
    """Make the experiment of some systems, the baseline first.

    `more`: tables of the experiment that the question itself gives. `names`: of the variants, if
    others than the systems give.
    """
    from webdyno.systems.kinds import is_own
    from webdyno.systems.variants import understood

    if asked.paths and asked.traffic:
        raise UserError(
            f"{caller.spelled('--path', asked.paths[0])}: {asked.traffic} says what is requested; "
            "leave one of them out"
        )
    named = [NamedSystem.of(system) for system in systems]
    given = [system.system for system in named]
    variants = [{"stack": name, **understood(asked.own, name, given)} for name in given]
    if asked.own and not any(map(is_own, given)):
        raise UserError(
            f"{flag_of(next(iter(asked.own)))} is for a system of your own, such as cmd:COMMAND, "
            f"and none of {', '.join(given)} is one"
        )
    served = catalogue.site(asked.site) if asked.site else common_site(catalogue, *given)
    names = names or variant_names(named)
    for name, system in zip(names, named, strict=False):
        if system.name and names.count(name) > 1:
            raise UserError(f"{name}={system.system}: {name} is the name of another one as well")
    spoken = _experiment(served, variants, names, asked, caller)
    spoken = CommandLine({**spoken.data, **more.data}, {**spoken.flags, **more.flags})
    draft = _draft(spoken, given, asked.own, asked.overrides, caller)
    experiment, catalogue = checked_with_own(draft, catalogue, Path.cwd(), caller)
    run = "-".join(reversed(names)) if len(names) <= 2 else f"ranks-{served.name}"
    run = re.sub(r"[^A-Za-z0-9._]+", "-", run)[:LONGEST_NAME].strip("-.")
    return Arrangement(run, experiment, catalogue)


def _experiment(
    served: Site,
    variants: Sequence[dict[str, object]],
    names: Sequence[str],
    asked: AskedSystems,
    caller: Caller,
) -> CommandLine:
    path = " and ".join(asked.paths)
    of_site = f"{path or served.ready_path} of the site {served.name}"
    where = f" at {of_site if served.paths else path}" if served.paths or path else ""
    if asked.traffic:
        where = f" at what {asked.traffic} asks for"
    flags: dict[KeyPath, str] = {("site",): caller.spelled("--site", served.name)}
    load = {**asked.load, **({"paths": list(asked.paths)} if path else {})}
    if "headers" in load:
        flags["load", "headers", "Host"] = flags["load", "headers"] = "--host"
    if path or served.paths:
        flags["load", "paths"] = caller.spelled(
            "--path", asked.paths[0] if path else served.ready_path
        )
    for name, variant in zip(names, variants, strict=True):
        flags |= {("variants", name, key): flag_of(key) for key in variant}
        flags["variants", name] = flags["variants", name, "stack"] = str(variant["stack"])
    title, question = _in_words(names)
    return CommandLine(
        data={
            "title": title,
            "question": f"{question}{where}?",
            "site": served.name,
            **({"load": load} if load else {}),
            "variants": dict(zip(names, variants, strict=True)),
        },
        flags=flags,
    )


def _in_words(names: Sequence[str]) -> tuple[str, str]:
    """Title and question, the latter without its end."""
    if len(names) > 2:
        which = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"Ranks of {len(names)} systems", f"What are the ranks of {which}"
    if len(names) == 1:
        return f"The capacity of {names[0]}", f"How much can {names[0]} take"
    first, second = names
    return f"{second} against {first}", f"How does {second} compare with {first}"


def common_site(catalogue: Catalogue, *systems: str) -> Site:
    """Return the first site that all can serve; raise UserError where there is none."""
    from webdyno.systems.kinds import is_own
    from webdyno.systems.variants import OWN_SITE

    known = [catalogue.stack(name) for name in systems if not is_own(name)]
    if not known:
        return catalogue.site(OWN_SITE)
    for site in catalogue.sites_for(known[0]):
        if all(site in catalogue.sites_for(other) for other in known):
            return site
    together = "both" if len(systems) == 2 else "all"
    raise UserError(f"there is no site that {' and '.join(systems)} can {together} serve")
