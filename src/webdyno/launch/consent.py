"""What needs a yes before it is done, such as installing and building, or a flag of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdyno.config import Catalogue
from webdyno.core.base import Model
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, latency, number, percent
from webdyno.core.service import Need
from webdyno.core.stack import Site, Stack
from webdyno.core.sweep import plan_points
from webdyno.core.text import SECRET
from webdyno.launch.caller import Caller

if TYPE_CHECKING:
    from webdyno.host.users import ServerUser
    from webdyno.measure.first_look import Unlike
    from webdyno.systems.kinds import OwnKind

MOST_UNLIKE = 0.5
"""Of a load from a log, left out: of what remains nothing would be known of the log."""
MOST_NAMED = 5
SHOWN_HOSTS = 100
NAMED_LETTERS = 160


def agree(
    what: str,
    question: str,
    caller: Caller,
    *,
    or_add: str = "\nadd --yes to agree",
    nothing: str = "nothing was run",
    usual: bool = False,
) -> None:
    """Ask for a yes, unless one was given; `or_add` says how to where nobody is to be asked.

    Raise UserError without one, `nothing` being what that means.
    """
    if caller.yes:
        return
    if caller.is_alone:
        raise UserError(f"{what}{or_add.replace('--yes', caller.spelled('--yes'))}; {nothing}")
    caller.notify(what)
    if not caller.ask(question, usual=usual):
        raise UserError(f"{nothing}, since you didn't agree")


def refuse_own_systems(written: Mapping[str, Any], caller: Caller) -> None:
    """Raise UserError where an experiment names systems that would run commands, and may not.

    Nothing is built before that. What runs already is only loaded; a configuration can name
    programs that its server starts.
    """
    if caller.allows_commands:
        return
    for text, kind in own_systems(written):
        if not kind.runs_already:
            raise not_allowed(text, "runs what its author wrote")


def own_systems(written: Mapping[str, Any]) -> Iterator[tuple[str, "OwnKind"]]:
    """Yield what an experiment names of users' own, such as `rev:main`, and of what kind it is."""
    from webdyno.systems.kinds import KINDS, is_own

    for key, text in keyed_texts([written.get("variants"), written.get("factors")]):
        if key and is_own(text):
            yield text, KINDS[text.partition(":")[0]]


def keyed_texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts in tables and models, each with its key; keys are texts, too."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Model):
        yield from keyed_texts(dict(value), key)
    elif isinstance(value, Mapping):
        yield from (("", each) for each in value)
        for name, each in value.items():
            yield from keyed_texts(each, name)
    elif isinstance(value, Sequence):
        for each in value:
            yield from keyed_texts(each, key)


def not_allowed(text: str, why: str) -> UserError:
    """Return why what somebody else may have named isn't done."""
    return UserError(
        f"{text:.{NAMED_LETTERS}}: {why}, which whoever started these tools has not allowed; "
        "`webdyno mcp --allow-commands` does, or type the command in a terminal"
    )


def refuse_other_machines(
    stacks: Sequence[Stack], caller: Caller, *, anywhere: bool = False
) -> None:
    """Raise UserError where stacks pass requests on to other machines, unless those may be loaded.

    Nothing that was made earlier answers that, nor does a yes. `anywhere`: another machine than
    this one may run them, for which this one is another.
    """
    from webdyno.systems.conf.passing import other_machines

    if not caller.loads_other_machines and (hosts := other_machines(stacks, anywhere=anywhere)):
        places = "\n".join(f"  {host}" for host in hosts[:SHOWN_HOSTS])
        more = hosts[SHOWN_HOSTS:] and f"\n  and {len(hosts) - SHOWN_HOSTS:,} more"
        names = [host.partition(" ")[0] for host in hosts if host[0].isalnum()]
        named = next(iter(names), "HOST")
        stand_in = caller.spelled("--backend", f"{named}=cmd:'COMMAND'")
        raise UserError(
            "requests would be passed on to other machines, and load them:\n"
            f"{places}{more or ''}\n"
            "have something on this machine answer in their place, as in "
            f"{stand_in}; or, if those machines are yours to load, add "
            f"{caller.spelled('--loads-other-machines')}, which {caller.spelled('--yes')} doesn't "
            "stand for"
        )


def vouched_targets(
    stacks: Sequence[Stack], sites: Sequence[Site], caller: Caller
) -> frozenset[str]:
    """Return the addresses on other machines where parts run already, which who calls vouches for.

    Raise UserError where he doesn't. As with machines that requests are passed on to, nothing that
    was made earlier answers that.
    """
    roles = [*(stack.services for stack in stacks), *(site.services for site in sites)]
    owns = [part.service.own for parts in roles for part in parts.values()]
    targets = {own.elsewhere: own for own in owns if own and own.elsewhere}
    if not targets:
        return frozenset()
    if not caller.target_is_mine:
        places = "\n".join(f"  {own.written} ({address})" for address, own in targets.items())
        raise UserError(
            f"another machine than this one would be loaded:\n{places}\n"
            "its other users would notice, and it may take the load for an attack. If it is yours "
            f"to load, add {caller.spelled('--target-is-mine')}, which "
            f"{caller.spelled('--yes')} doesn't stand for"
        )
    caller.notify("load goes to another machine, whose other users notice it:")
    from webdyno.servers.ready import Address, measured_round_trip_s

    for address, own in targets.items():
        try:
            trip_s = measured_round_trip_s(Address(own.listens_at or "", own.port or 0, None, 0))
            trip = f"each latency has the network's round trip in it, {latency(trip_s * 1e6)} here"
        except OSError as error:
            trip = f"it doesn't accept connections ({error.strerror or error})"
        caller.notify(f"  {own.written} ({address}): {trip}")
    return frozenset(targets)


def agree_to_secrets(stacks: Sequence[Stack], asked: Iterable[Model], caller: Caller) -> None:
    """Ask before programs that run as another user get variables of root's.

    A repository of his names them, and so may what is asked of it: experiments, or parts of one.
    Raise UserError where nobody agrees.
    """
    requested = [model.model_dump_json() for model in asked]
    services = [role.service for stack in stacks for role in stack.services.values()]
    for service, own in ((each, each.own) for each in services if each.own):
        texts = [*service.environment.values(), *requested]
        variables = [*dict.fromkeys(name for text in texts for name in SECRET.findall(text))]
        if not variables:
            continue
        other = _program_user(service.folder, Path(own.folder or service.folder), own.owner)
        if other is None or other.called_sudo:
            continue
        named = ", ".join(f"{name} (${{env:{name}}})" for name in variables)
        what = f"{service.where} runs as {other.name}, and gets variables of yours: {named}"
        or_add = f"; run webdyno as {other.name}, or add --yes to agree"
        agree(what, "send them?", caller, or_add=or_add)


def provide(
    stacks: Sequence[Stack], sites: Sequence[Site], tools: Iterable[Need], caller: Caller
) -> None:
    """Install and build, after one question, what stacks, sites and tools lack."""
    from webdyno.servers.needs import (
        build_program,
        find,
        install_packages,
        missing_packages,
        unbuilt,
    )

    packages = missing_packages(stacks, sites)
    packages += [tool.apt for tool in tools if find(tool) is None]
    to_build = unbuilt(stacks)
    titles = ", ".join(service.title for service in to_build)
    downloads = f"build {titles}, which downloads what lock files name"

    def agrees(question: str) -> bool:
        if caller.yes:
            caller.notify(f"{question} {caller.spelled('--yes')} agreed to that …")
            return True
        return bool(caller.ask(question, usual=True))

    install_packages(packages, agrees, f", and {downloads}" if to_build else "")
    if to_build and not packages and not agrees(f"{downloads}?"):
        by_yes = caller.spelled("--yes")
        raise OperationError(f"not built: {titles}; add {by_yes} to have that done")
    failures = []
    for service in to_build:
        try:
            build_program(service, caller.notify)
        except OperationError as failure:
            failures.append(str(failure))
    if failures:
        raise OperationError("\n".join(failures))


def without_unlike(
    experiment: Experiment,
    catalogue: Catalogue,
    caller: Caller,
    vouched: frozenset[str] = frozenset(),
    out: Path | None = None,
) -> Experiment:
    """Return an experiment of a log without what variants answer otherwise, or raise UserError."""
    if not _can_be_looked_at(experiment, catalogue):
        return experiment
    from webdyno.measure.first_look import unlike_requests, without

    unlike = unlike_requests(experiment, catalogue, vouched, out)
    if not unlike:
        return experiment
    differences = _differences_of(experiment, unlike)
    share = sum(request.share for request in unlike)
    if share > MOST_UNLIKE:
        raise UserError(f"{differences}\nthat is most of the load: nothing was measured")
    if any(plan.experiment.load.arrivals == "replay" for plan in plan_points(experiment)):
        raise UserError(f"{differences}\na replay asks for all of them; omit load.arrivals=replay")
    if caller.yes:
        by_yes = caller.spelled("--yes")
        caller.notify(f"{differences}\nthey are excluded, as {by_yes} agreed to")
    agree(
        differences,
        "leave them out and measure the rest?",
        caller,
        or_add="\nadd --yes to leave them out",
        nothing="nothing was measured",
        usual=True,
    )
    return without(experiment, unlike)


def _can_be_looked_at(experiment: Experiment, catalogue: Catalogue) -> bool:
    """Whether a load is of a log, and the same for all variants, which this machine starts."""
    requests = experiment.requests
    stacks = [catalogue.stack(variant.stack) for variant in experiment.variants.values()]
    return (
        bool(experiment.workload and requests)
        and all(experiment.requests_of(name) == requests for name in experiment.variants)
        and experiment.testbed.kind != "cluster"
        and all(request.stands_for == 1 for request in requests)
        and all(stack.protocol == "http" for stack in stacks)
    )


def _differences_of(experiment: Experiment, unlike: Sequence["Unlike"]) -> str:
    share = sum(request.share for request in unlike)
    of = number(len(experiment.requests))
    lines = [
        f"{number(len(unlike))} of {of} requests, {percent(share)} of the load, can't be compared:"
    ]
    lines += [f"    {request.why} ({percent(request.share)})" for request in unlike[:MOST_NAMED]]
    if (more := len(unlike) - MOST_NAMED) > 0:
        lines.append(f"    and {count(more, 'other')}")
    return "\n".join(lines)


def _program_user(run: Path, folder: Path, owner: int | None) -> "ServerUser | None":
    """Return as whom a program runs, as `programs_user`; a run's folder may not be there yet.

    Whose a program's folder was that isn't there now is known of its owner alone.
    """
    from webdyno.host.users import programs_user

    run, folder = (path if path.exists() else Path("/") for path in (run, folder))
    return programs_user(run, folder, owner)
