"""An entry of somebody's: a catalog with a stack and its program, and what speaks against it."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from webdyno.config import Catalogue, time_limit
from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import listed
from webdyno.core.service import Service
from webdyno.core.stack import Stack
from webdyno.core.tables import read_text
from webdyno.launch.arrangement import AskedSystems, arrange
from webdyno.launch.caller import Caller
from webdyno.launch.foreign import agree_to_use
from webdyno.launch.measure import measure_again
from webdyno.league.judged import JudgedRun
from webdyno.league.task import SITES

FEWEST_SITES = 3
CHECK_S = 20.0
"""How long each site is measured: the check before it and errors under load matter here."""
LOCKS = {
    "package.json": ("package-lock.json", "bun.lock", "deno.lock", "pnpm-lock.yaml", "yarn.lock"),
    "Cargo.toml": ("Cargo.lock",),
    "go.mod": ("go.sum",),
    "Gemfile": ("Gemfile.lock",),
    "composer.json": ("composer.lock",),
    "mix.exs": ("mix.lock",),
    "pyproject.toml": ("requirements.txt", "uv.lock", "poetry.lock"),
}
"""By what names a program's packages: what pins their versions."""
PINNED = re.compile(r"^\s*([\w.\-\[\]]+\s*==|#|--|-r\b|\\|$)")
"""A line of a requirements.txt that leaves no version open."""
PACKAGE = re.compile(r"\s*([A-Za-z0-9][\w.\-]*)")
LONGEST_NAME = 80
RANGES = re.compile(r"<version>\s*(\[|\(|LATEST|RELEASE|[^<]*-SNAPSHOT)")
WORKERS = {"workers", "processes", "worker_processes"}


def check_entry(
    folder: Path, catalogs: Sequence[Path], caller: Caller, time_s: float | None = None
) -> list[str]:
    """Return what speaks against an entry's stacks; nothing where they are fit for the league.

    Raise UserError where the folder is no catalog with a stack, has links that lead out of it, or
    nobody agrees to its use: before that nothing of it is read but its catalog.
    """
    catalogue = Catalogue.load([*catalogs, folder])
    own = [stack for stack in catalogue.stacks.values() if stack.folder.is_relative_to(folder)]
    if not own:
        raise UserError(f"--check {folder}: has no stack, stacks/NAME/stack.toml")
    agree_to_use(catalogue, caller)
    known = Catalogue.load(catalogs).stacks
    remarks = []
    for stack in own:
        by_files = remarks_on(stack, is_taken=stack.name in known)
        by_runs = _measured(stack, catalogue, caller, time_s or CHECK_S)
        remarks += [f"{stack.name}: {said}" for said in chain(by_files, by_runs)]
    return remarks


def remarks_on(stack: Stack, *, is_taken: bool) -> Iterator[str]:
    """Yield what can be seen in its files."""
    if is_taken:
        yield "webdyno's catalog has a stack of this name; choose another one"
    for key in ("language", "kind", "home"):
        if not getattr(stack, key):
            yield f'stack.toml lacks {key} = "…"; pages filter and link by it'
    served = [site for site in SITES if site in stack.serves]
    if len(served) < FEWEST_SITES:
        yield (
            f"serves {listed(served) if served else 'none'} of {', '.join(SITES)}; "
            f"{FEWEST_SITES} are the least"
        )
    for role, part in stack.services.items():
        yield from (f"service {role}: {said}" for said in _of_service(part.service))


def _of_service(service: Service) -> Iterator[str]:
    if service.version is None and not service.modules and not service.build:
        yield "says no version: give it a [version] or [modules]"
    if not service.facts:
        yield "has no [facts]: say how many workers there are, and what is logged"
    if service.build:
        program = service.path_of(service.build.program)
        if program.resolve().is_relative_to(service.folder.parent.resolve()):
            yield from unpinned(program)
    for name in sorted(WORKERS & service.settings.keys()):
        if isinstance(service.settings[name].default, int):
            yield (
                f'{name} is fixed at {service.settings[name].default}: "server-cpus" gives it what '
                "others get"
            )


def unpinned(program: Path) -> Iterator[str]:
    """Yield which versions of a program's packages are open."""
    for names, locks in LOCKS.items():
        if (program / names).is_file() and not any((program / lock).is_file() for lock in locks):
            yield f"{names} has no lock file next to it ({' or '.join(locks)}): versions are open"
    for line in (read_text(program / "requirements.txt") or "").splitlines():
        if not PINNED.match(line):
            package = PACKAGE.match(line)
            named = f": that of {package[1][:LONGEST_NAME]}" if package else ""
            yield f"requirements.txt leaves a version open{named}"
            break
    if RANGES.search(read_text(program / "pom.xml") or ""):
        yield "pom.xml has a version that is a range, LATEST, RELEASE or a snapshot"


def _measured(stack: Stack, catalogue: Catalogue, caller: Caller, time_s: float) -> Iterator[str]:
    """Yield what shows once it runs: at each site that it serves, next to itself, for a while."""
    for site in catalogue.sites_for(stack):
        asked = AskedSystems(site=site.name, overrides=time_limit(time_s, "--time"))
        try:
            _, experiment, joined = arrange([stack.name, stack.name], asked, catalogue, caller)
            # Two may begin in one second.
            named = f"check-{stack.name}-{site.name}"
            run = measure_again(named, experiment, joined, None, caller)
        except (UserError, OperationError) as error:
            yield f"{site.name}: {error}"
            continue
        decide_on = experiment.measure.decide_on
        judged = JudgedRun(run.folder.data().points[0]).judgement
        first = next(iter(experiment.variants))
        wrong = [each for each in judged.warnings if each.invalidates(decide_on, [first])]
        for warning in wrong:
            yield f"{site.name}: {warning.what} {warning.fix}"
        if not wrong and run.end == "died":
            yield f"{site.name}: its server died; the log is in {run.folder.path}"
