"""Finds own systems among an experiment's variants; parts of a catalogue take their place."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from webdyno.config import Catalogue, Draft
from webdyno.config.reading import LONGEST_SHOWN, PlaceOf, build
from webdyno.core.errors import UserError
from webdyno.core.files import named_folder, reading
from webdyno.core.format import listed
from webdyno.core.request import header
from webdyno.core.tables import as_list, as_table, is_table, table
from webdyno.core.text import SECRET, secret_values
from webdyno.core.variant import key_parts
from webdyno.systems import command
from webdyno.systems.conf import passing
from webdyno.systems.kinds import KINDS, OwnKind, is_own, is_revision
from webdyno.systems.target import (
    GeneratedCatalogue,
    GeneratedService,
    Notify,
    OwnKeys,
    Provide,
    TargetSpec,
    declared_settings,
    split_settings,
)

OWN_SITE = "own"
"""The site of variants of which nobody knows what they serve."""
EXAMPLES = {
    "cmd": "cmd:'./server --port $PORT'",
    "rev": "rev:main",
    "conf": "conf:nginx.conf",
    "image": "image:compose.yaml#web",
    "url": "url:http://127.0.0.1:8080",
}
"""By kind: an own system."""


def understood(
    keys: Mapping[str, object], stack: str, all_of_them: Sequence[str]
) -> dict[str, Any]:
    """Return the keys that are for one stack, without those for kinds of other stacks."""
    if not is_own(stack):
        return {}
    kinds = [KINDS[system.partition(":")[0]] for system in all_of_them if is_own(system)]
    kind = KINDS[stack.partition(":")[0]]
    others = set()
    if not kind.has_root and any(other.has_root for other in kinds):
        others.add("root")
    if not kind.has_backends and any(other.has_backends for other in kinds):
        others.add("backends")
    return {key: value for key, value in keys.items() if key not in others}


def resolve(
    draft: Draft,
    catalogue: Catalogue,
    folder: Path,
    notify: Notify,
    provide: Provide,
    *,
    fresh: bool = False,
    within: Path | None = None,
) -> tuple[Draft, Catalogue]:
    """Return an experiment whose variants all are of the catalog, and that catalog.

    `folder` is where relative paths begin; `within` is all that containers may reach of this
    machine. What has to be built is built, all revisions again where they are to be `fresh`. Raise
    UserError for what can't be, OperationError for what fails.
    """
    variants, factors = draft.data.get("variants"), draft.data.get("factors", {})
    if not is_table(variants) or not is_table(factors):
        return draft, catalogue  # whoever checks it will say so
    protocol = next(iter(as_list(factors.get("load.protocol"))), None)
    of_all = TargetSpec(
        written="",
        text="",
        keys=OwnKeys(),
        folder=folder,
        place="",
        notify=notify,
        services=catalogue.services,
        testbed=table(draft.data, "testbed").get("kind"),
        provide=provide,
        protocol=str(protocol or _protocol_in(draft.data) or "http"),
        host=_host_in(draft.data),
        fresh=fresh,
        within=within,
    )
    resolver = _Resolver(of_all, draft.place)
    new_variants, new_factors = dict(variants), dict(factors)
    for name, variant in variants.items():
        if not is_table(variant):
            continue
        keys = resolver.keys(("variants", name), variant)
        for key, levels in factors.items():
            of_stack = key_parts(key) == ("variants", name, "stack")
            if of_stack and any(map(is_own, as_list(levels))):
                place = draft.place(("factors", key))
                new_factors[key] = [resolver.name(level, variant, keys, place) for level in levels]
        if is_own(variant.get("stack")):
            place = draft.place(("variants", name, "stack"))
            own = {"stack": resolver.name(variant["stack"], variant, keys, place)}
            kept = {key: value for key, value in variant.items() if key not in OwnKeys.model_fields}
            declared, given = split_settings(variant.get("settings"))
            new_variants[name] = {**kept, **({"settings": given} if declared else {}), **own}
    resolver.demand_backends()
    if (generated := resolver.generated.path) is None:
        return draft, catalogue
    data = {**draft.data, "variants": new_variants, **({"factors": new_factors} if factors else {})}
    stacks = [as_table(variant).get("stack") for variant in variants.values()]
    if "site" not in data and all(map(is_own, stacks)):
        data["site"] = OWN_SITE
    if any(map(is_revision, stacks)):
        data.setdefault("same_bodies", False)
    return replace(draft, data=data), catalogue.joined_by([generated])


def _protocol_in(data: Mapping[str, Any]) -> str | None:
    protocol = table(data, "load").get("protocol")
    return protocol if isinstance(protocol, str) else None


def _host_in(data: Mapping[str, Any]) -> str:
    """Return the host of requests: the load's, else that of the first one with headers."""
    for entry in (data.get("load"), *as_list(data.get("requests"))):
        host = header(table(entry, "headers"), "host")
        if isinstance(host, str) and not SECRET.search(host):
            return host
    return ""


def _refuse_misplaced(stack: str, kind: OwnKind, keys: OwnKeys, declares: bool, place: str) -> None:
    key = "setup" if keys.setup else "prepare"
    able = ", ".join(f"{word}:" for word, other in KINDS.items() if other.takes_settings)
    misplaced = {
        "root is for a configuration, conf:FILE": keys.root and not kind.has_root,
        "services stand behind a command, a revision or a container (cmd:, rev:, image:)": (
            keys.services and not kind.has_services
        ),
        f"{key} is for what stands behind a command or a revision (cmd:, rev:)": (
            (keys.setup or keys.prepare) and not kind.by_line
        ),
        "containers says what runs a container (image:, rev:)": (
            keys.containers and not kind.has_containers
        ),
        "backends are for a configuration, conf:FILE": keys.backends and not kind.has_backends,
        f"settings can be declared for a command or a configuration ({able})": (
            declares and not kind.takes_settings
        ),
    }
    for what, is_misplaced in misplaced.items():
        if is_misplaced:
            raise UserError(f"{place}: {what}, and this is {stack}")


@dataclass
class _Resolver:
    """Turns own systems into parts of a catalog, each once."""

    of_all: TargetSpec
    """What holds for all systems, unless a variant says otherwise."""
    place: PlaceOf
    known: list[tuple[TargetSpec, GeneratedService]] = field(default_factory=list, init=False)
    """What was requested so far, wherever that was, and what became of it."""
    backends: dict[str, str] = field(default_factory=dict, init=False)
    """Where each is given, by the name of the host that it answers for."""
    passes_on_to: dict[str, None] = field(default_factory=dict, init=False)
    """Hosts that configurations name."""

    def __post_init__(self) -> None:
        self.generated = GeneratedCatalogue(self.of_all.services)

    def keys(self, where: tuple[str, ...], variant: Mapping[str, Any]) -> OwnKeys:
        """Read the keys of a variant's own system; raise UserError for those of other stacks."""
        given = {key: variant[key] for key in OwnKeys.model_fields if key in variant}
        if given and not is_own(variant.get("stack")):
            key = next(iter(given))
            raise UserError(
                f"{self.place((*where, key))}: {key} is for a system of your own, such as stack = "
                f'"cmd:./server --port $PORT"; a stack of the catalog has settings'
            )
        keys = build(OwnKeys, given, lambda inner: self.place((*where, *inner)))
        of_services = (*where, "services")
        command.check_services(
            keys.services, self.of_all.services, lambda role: self.place((*of_services, *role))
        )
        for host in keys.backends:
            self.backends.setdefault(host, self.place((*where, "backends", host)))
        return keys

    def demand_backends(self) -> None:
        """Raise UserError for a backend that no configuration passes requests on to."""
        for host, place in self.backends.items():
            if passing.host_or_socket(host, place) not in self.passes_on_to:
                known = listed(self.passes_on_to) or "none"
                raise UserError(
                    f"{place}: nothing passes requests on to {host}; hosts that are named: {known}"
                )

    def name(self, stack: str, variant: Mapping[str, Any], keys: OwnKeys, place: str) -> str:
        """Return the name in the catalog of a stack that a user wrote."""
        if not is_own(stack):
            return stack
        word, _, text = stack.partition(":")
        kind = KINDS[word]
        if "\0" in stack:
            raise UserError(f"{place.rstrip(':')}: {stack!r:.{LONGEST_SHOWN}} has a NUL in it")
        if not text.strip():
            raise UserError(
                f"{place.rstrip(':')}: nothing stands behind {word}:, such as {EXAMPLES[word]}"
            )
        if kind.runs_already and (fixed := {"memory", "cpus"}.intersection(variant)):
            raise UserError(
                f"{place}: {' and '.join(sorted(fixed))} can't be given to what runs already; "
                "let webdyno start it, with cmd:"
            )
        if kind.runs_already:
            self._refuse_network(place)
        declared, _ = split_settings(variant.get("settings"))
        _refuse_misplaced(stack, kind, keys, bool(declared), place)
        secret_values(keys.environment.values(), os.environ)
        folder = self.of_all.folder / (keys.dir or ".")
        if not folder.is_dir():
            raise UserError(
                f"{place}: there is no folder {folder.resolve()}, in which it is to run"
            )
        with reading(folder):
            folder, owner = named_folder(folder)
        spec = replace(
            self.of_all,
            written=stack,
            text=text.strip(),
            keys=keys,
            folder=folder,
            owner=owner,
            place=place,
            protocol=_protocol_in(variant) or self.of_all.protocol,
            host=_host_in(variant) or self.of_all.host,
            settings=declared_settings(
                declared, lambda where: f"{place}: settings.{'.'.join(map(str, where))}"
            ),
        )
        made = self._make(kind, spec)
        self.passes_on_to |= dict.fromkeys(made.passes_on_to)
        behind, names = dict(made.behind), self._containers(made)
        for role, system in made.backends.items():
            names[role], backend = self._backend(system, spec)
            behind |= backend.behind
            names |= self._containers(backend)
        service = self.generated.service(word, text, made)
        return self.generated.stack(service, str(made.service["title"]), behind, names)

    def _refuse_network(self, place: str) -> None:
        if self.of_all.testbed == "netns":
            raise UserError(
                f"{place}: what runs already isn't in the network of --testbed netns; let webdyno "
                "start it, with cmd:"
            )

    def _make(self, kind: OwnKind, spec: TargetSpec) -> GeneratedService:
        """Make what is requested, once for all variants that are alike."""
        same = replace(spec, place="")
        for known, made in self.known:
            if known == same:
                return made
        made = kind.make(spec)
        self.known.append((same, made))
        return made

    def _containers(self, made: GeneratedService) -> dict[str, str]:
        """Return the services that containers behind it become, by role."""
        return {
            role: self.generated.service("image", str(container.service["title"]), container)
            for role, container in made.containers.items()
        }

    def _backend(self, system: str, spec: TargetSpec) -> tuple[str, GeneratedService]:
        """Return the service that a backend becomes, by its name, and what is behind it."""
        word, _, text = system.partition(":")
        kind = KINDS[word]
        if kind.runs_already:
            self._refuse_network(spec.place)
        keys = OwnKeys(environment=spec.keys.environment)
        behind = replace(spec, written=system, text=text.strip(), keys=keys, settings={})
        made = self._make(kind, replace(behind, protocol="http", host=""))
        if made.backends:
            raise UserError(
                f"{spec.place}: the backend {system} has backends of its own; name one that stands "
                "alone, such as cmd:COMMAND"
            )
        return self.generated.service(word, text, made), made
