"""What needs a yes before it is done: installing packages, running what isn't webdyno's own."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.prompt import Confirm

from webdyno.cli.console import plain_console
from webdyno.definitions.foreign import ForeignPart, commands_around_blocks, foreign_parts
from webdyno.model.experiment import State
from webdyno.model.files import writing
from webdyno.model.mistake import Mistake
from webdyno.model.service import Need
from webdyno.model.stack import Site, Stack

AGREED_FILE = "agreed-catalogues"
SHOWN_HOSTS = 100


def agree_to_foreign(parts: Sequence[ForeignPart], *, yes: bool) -> None:
    """Say what parts that aren't webdyno's own will run, and ask, once for each content of theirs.

    Raise Mistake when nobody agrees, or nobody is there to be asked and `yes` wasn't given.
    """
    agreed = _agreed_file()
    known = _agreed(agreed)
    new = [part for part in parts if part.fingerprint not in known]
    if not new:
        return
    told = _what_runs(new)
    if not yes:
        if not sys.stdin.isatty():
            raise Mistake(f"{told}\nadd --yes to agree; nothing was run")
        console = plain_console(stderr=True)
        console.print(told, soft_wrap=True)
        if not Confirm.ask("run that?", default=False, console=console):
            raise Mistake("nothing was run, since you didn't agree")
    _remember(agreed, new)


def agree_to_catalogues(stacks: Sequence[Stack], sites: Sequence[Site], *, yes: bool) -> None:
    """Ask for what parts of a catalogue will run, as `agree_to_foreign` does."""
    agree_to_foreign(foreign_parts(stacks, sites), yes=yes)


def agree_to_own(stacks: Sequence[Stack], states: Sequence[State] = ()) -> None:
    """Remember that you asked for these yourself: a resumed run asks no more."""
    own = [part for part in foreign_parts(stacks, []) if part.in_folder]
    own += commands_around_blocks(states, Path.cwd())
    agreed = _agreed_file()
    known = _agreed(agreed)
    if new := [part for part in own if part.fingerprint not in known]:
        _remember(agreed, new)


def refuse_other_machines(stacks: Sequence[Stack], *, loaded: bool, anywhere: bool = False) -> None:
    """Raise Mistake where stacks pass requests on to other machines, unless those may be loaded.

    Nothing that was made earlier answers that, nor does a yes. `anywhere`: another machine than
    this one may run them, for which this one is another.
    """
    from webdyno.own.passing import other_machines

    if not loaded and (found := other_machines(stacks, anywhere=anywhere)):
        places = "\n".join(f"  {it}" for it in found[:SHOWN_HOSTS])
        more = found[SHOWN_HOSTS:] and f"\n  and {len(found) - SHOWN_HOSTS:,} more"
        raise Mistake(
            "requests would be passed on to other machines, and load them:\n"
            f"{places}{more or ''}\n"
            "have a stand-in on this machine answer in their place, and name that there "
            "(127.0.0.1:PORT); or, if those machines are yours to load, add "
            "--loads-other-machines, which --yes doesn't stand for"
        )


def provide_packages(
    stacks: Sequence[Stack], sites: Sequence[Site], tools: Iterable[Need] = (), *, yes: bool
) -> None:
    """Install what stacks, sites and tools need and isn't there, unless somebody says no.

    Raise Trouble when that fails or isn't agreed to; where nobody is there to be asked, `yes` is
    needed.
    """
    from webdyno.stack.needs import find, install_packages, missing_packages

    console = plain_console(stderr=True)

    def agreed(question: str) -> bool:
        if yes:
            console.print("installing packages, as --yes agreed to …")
        elif sys.stdin.isatty():
            return Confirm.ask(question, default=True, console=console)
        return yes

    packages = missing_packages(stacks, sites)
    packages += [tool.apt for tool in tools if find(tool) is None]
    install_packages(packages, agreed)


def _what_runs(parts: Sequence[ForeignPart]) -> str:
    lines = ["this isn't webdyno's own, and will run:"]
    for part in parts:
        lines.append(f"  {part.folder} (as {_as_whom(part)})")
        lines += [f"    {command}" for command in part.runs]
        if part.packages:
            lines.append(f"    with the packages {', '.join(part.packages)}")
    return "\n".join(lines)


def _as_whom(part: ForeignPart) -> str:
    from webdyno.host.users import caller, name_of, owner_of, server_user

    if part.in_container:
        return name_of(None)
    if part.in_folder is None:
        return name_of(server_user())
    # A folder that isn't there yet will be ours.
    there = [it if it.exists() else Path("/") for it in (part.in_folder, part.folder)]
    return name_of(next((user for it in there if (user := caller(it) or owner_of(it))), None))


def _agreed_file() -> Path:
    from webdyno.calibrate.store import state_folder

    return state_folder() / AGREED_FILE


def _agreed(file: Path) -> list[str]:
    return file.read_text().split() if file.is_file() else []


def _remember(agreed: Path, parts: Sequence[ForeignPart]) -> None:
    with writing(agreed):
        agreed.parent.mkdir(parents=True, exist_ok=True)
        with agreed.open("a") as file:
            file.writelines(f"{part.fingerprint}\n" for part in parts)
