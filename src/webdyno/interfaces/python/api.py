"""The Python API: what `import webdyno` gives.

What can't be asked raises `UserError`, a server, tool or disk that fails raises `OperationError`;
both say what to do. Ctrl-C raises KeyboardInterrupt: what was measured by then is kept, for
`resume`.
"""

import logging
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pydantic import TypeAdapter

from webdyno.config import Catalogue, CommandLine, Draft, Override, time_limit
from webdyno.config.checks import FACTORS
from webdyno.config.experiment import Source
from webdyno.config.reading import KeyPath, read_value
from webdyno.config.traffic import AskedTraffic
from webdyno.core.base import Budget
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.measure import Measure
from webdyno.core.text import printable
from webdyno.core.variant import key_parts
from webdyno.interfaces.python.result import Result, result_in
from webdyno.launch.arrangement import (
    NOTHING_MORE,
    Arrangement,
    AskedSystems,
    arrange,
    checked_with_own,
)
from webdyno.launch.caller import AskPerson, Caller, LineProgress
from webdyno.launch.ending import leave_session_keyring
from webdyno.launch.measure import (
    MeasuredRun,
    has_enough,
    measure_again,
    measure_on,
    what_is_kept,
    within_budget,
)
from webdyno.launch.sending import refuse_reading
from webdyno.measure.folder import RunFolder

logger = logging.getLogger(__name__)

_BUDGET: TypeAdapter[float] = TypeAdapter(Budget)
Texts = str | Sequence[str]
"""Some texts, or one by itself."""


class Options(TypedDict, total=False):
    """How something is measured; all of it may be omitted."""

    time: float | str
    """The longest to measure, in total: seconds, or as in `5m`."""
    settings: Mapping[str, object]
    """Settings of the experiment by their dotted keys, such as {"load.connections": 16}."""
    vary: Mapping[str, object]
    """Settings at several levels each: all combinations are measured."""
    traffic: str | Path | Sequence[str | Path]
    """Files of requests (HAR, .http, JSON lines, curl, `webdyno traffic`), or a command of curl."""
    output: str | Path
    """Folder of the run, new or empty; else one under runs/."""
    catalog: str | Path | Sequence[str | Path]
    """Folders with services, stacks, sites or experiments of your own."""
    yes: bool
    """Agree to all that would be asked: missing packages, catalogues of other people."""
    loads_other_machines: bool
    """Let configurations pass requests on to other machines, which then are loaded, too."""
    target_is_mine: bool
    """Vouch for the machines that `url:` names, which then are loaded."""
    allow_commands: bool
    """False refuses what runs its author's commands or sends your files or variables: for programs
    that pass on what somebody else named."""
    cluster: str
    """The cluster's head, such as 10.0.0.1:6379; else RAY_ADDRESS."""
    report: bool
    """Write `report.html` into the run's folder at the end."""
    notify: Callable[[str], None] | None
    """Is given each line that says how it goes; None: nobody. Standard error else."""
    verbose: bool
    """Report each slot as well."""
    ask: AskPerson
    """Asks a person, instead of raising UserError where `yes` would be needed."""
    by_keyword: bool
    """Whether messages name keywords of these functions (the usual case), or else flags."""


class Systems(Options, total=False):
    """What systems that are named serve and are asked for, and how they are measured."""

    site: str
    """What all of them serve; else the first that all can serve."""
    paths: Texts
    """The paths that are requested; else the site's first."""
    own: Mapping[str, object]
    """Keys of your own systems (docs/how-to/compare-my-app.md): dir, environment, services,
    prepare, ready, …"""


def run_experiment(
    experiment: str | Path | Mapping[str, Any] | Experiment,
    *,
    full: bool = False,
    **options: Unpack[Options],
) -> Result:
    """Run an experiment: its name in the catalogue, its file, or what such a file has as a mapping.

    `full`: at all levels of its factors; else at as many as fit into the budget.
    """
    given = CallOptions.of(options, Options)
    name, source = _source(experiment, given.catalogue)
    draft = Draft.of(source, given.overrides)
    asked, catalogue = checked_with_own(draft, given.catalogue, source.folder, given.caller)
    if not full and "vary" not in options:
        asked = within_budget(asked, catalogue, given.caller)
    return given.measure(Arrangement(name, asked, catalogue))


def resume(folder: str | Path, **options: Unpack[Options]) -> Result:
    """Continue a run that was interrupted; with a `time` for so many seconds from now on."""
    given = CallOptions.of(options, Options)
    return given.result_of(measure_on(Path(folder), given.caller, given.time_s))


def open_run(folder: str | Path) -> Result:
    """Read a run from its folder: a CapacityResult or GateRun where it is one."""
    return result_in(RunFolder.open(Path(folder)))


@dataclass(frozen=True)
class CallOptions:
    """What the options come to."""

    options: Mapping[str, Any]
    caller: Caller
    catalogue: Catalogue
    overrides: Sequence[Override]
    traffic: str
    """How requests were given, if they were."""

    @classmethod
    def of(cls, options: Mapping[str, Any], known: type[Options]) -> "CallOptions":
        """Read them; raise TypeError for one that there isn't, as Python does."""
        if unknown := options.keys() - known.__annotations__.keys():
            hints = {_keyword_hint(name, known.__annotations__) for name in unknown} - {""}
            what = f"there is no keyword {', '.join(sorted(unknown))}"
            raise TypeError("; ".join([what, *sorted(hints)]))
        leave_session_keyring()
        caller = _caller(options)
        refuse_reading(options, caller)
        catalogue = Catalogue.load([Path(folder) for folder in several(options.get("catalog", ()))])
        files = [str(file) for file in several(options.get("traffic", ()))]
        own, traffic = list(_overrides(options, caller)), AskedTraffic(files, caller.by_keyword)
        overrides = [*own, *traffic.overrides(own, caller.notify)]
        return cls(options, caller, catalogue, overrides, traffic.words)

    @property
    def systems(self) -> AskedSystems:
        """What systems serve and are asked for."""
        return AskedSystems(
            site=self.options.get("site"),
            paths=several(self.options.get("paths", ())),
            own=self.options.get("own", {}),
            traffic=self.traffic,
            overrides=self.overrides,
        )

    @property
    def folder(self) -> Path | None:
        """The folder of what is measured, where one is given."""
        output = self.options.get("output")
        return None if output is None else Path(output)

    def arrange(self, systems: Sequence[str], more: CommandLine = NOTHING_MORE) -> Arrangement:
        return arrange(systems, self.systems, self.catalogue, self.caller, more)

    def measure(self, asked: Arrangement) -> Result:
        return self.result_of(measure_again(*asked, self.folder, self.caller))

    def result_of(self, measured: MeasuredRun) -> Result:
        """Return what came of it; report where it didn't come to its end."""
        if measured.end != "finished":
            what = "interrupted" if measured.interrupted else "a server died"
            self.caller.notify(f"{what}; {what_is_kept(measured.folder)}")
        result = result_in(measured.folder)
        enough = not measured.interrupted or has_enough(measured.folder)
        if self.options.get("report") and enough:
            result.report()
        if measured.interrupted:
            raise KeyboardInterrupt
        return result

    @property
    def time_s(self) -> float | None:
        """How long is measured, if that is said."""
        time = self.options.get("time")
        if time is None:
            return None
        return read_value(_BUDGET, f"{time}", self.caller.spelled("--time", time))


def several(given: Any) -> list[Any]:  # noqa: ANN401 (texts, paths, levels)
    """Return what a keyword has as a list, where it may have one thing as well."""
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return [given] if is_one else list(given)


def _keyword_hint(unknown: str, known: Iterable[str]) -> str:
    """Return what a keyword is meant to be: a setting, or a keyword whose name comes near."""
    for table, model in (("load", Load), ("measure", Measure)):
        if unknown in model.model_fields:
            return f'{unknown} is a setting: settings={{"{table}.{unknown}": …}}'
    near = get_close_matches(unknown, list(known))
    return f"did you mean {' or '.join(near)}?" if near else ""


def _caller(options: Mapping[str, Any]) -> Caller:
    notify = options.get("notify", _to_standard_error) or (lambda _: None)
    return Caller(
        notify=notify,
        progress=partial(LineProgress, notify=notify, verbose=options.get("verbose", False)),
        asks=options.get("ask"),
        yes=options.get("yes", False),
        loads_other_machines=options.get("loads_other_machines", False),
        target_is_mine=options.get("target_is_mine", False),
        allows_commands=options.get("allow_commands", True),
        cluster=options.get("cluster"),
        by_keyword=options.get("by_keyword", True),
    )


def _to_standard_error(text: str) -> None:
    logger.debug("says: %s", text)
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201


def _overrides(options: Mapping[str, Any], caller: Caller) -> Iterator[Override]:
    if (time := options.get("time")) is not None:
        yield from time_limit(time, caller.spelled("--time", time))
    for key, value in options.get("settings", {}).items():
        flag = f"settings[{key!r}]" if caller.by_keyword else f"--set {key}={value}"
        yield Override(_key(key, flag), value, flag)
    for key, levels in options.get("vary", {}).items():
        flag = f"vary[{key!r}]" if caller.by_keyword else f"--vary {key}"
        _key(key, flag)
        yield Override((FACTORS, key), several(levels), flag)


def _key(key: str, flag: str) -> KeyPath:
    parts = key_parts(key)
    if not all(parts):
        raise UserError(f"{flag}: {key!r} is no dotted key, such as load.connections")
    return parts


def _source(
    experiment: str | Path | Mapping[str, Any] | Experiment, catalogue: Catalogue
) -> tuple[str, Source]:
    if isinstance(experiment, str | Path):
        return Path(experiment).stem, catalogue.experiment_file(str(experiment))
    if isinstance(experiment, Experiment):
        return "experiment", CommandLine(tomllib.loads(experiment.toml()), {})
    return "experiment", CommandLine(dict(experiment), {})
