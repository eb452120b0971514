"""Flags that several commands have, each described once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from webdyno.definitions import Override
from webdyno.definitions.refusal import build
from webdyno.model.bench import BenchSettings
from webdyno.model.experiment import GeneratorName

CatalogDirs = Annotated[
    Sequence[Path],
    Parameter(
        name="--catalog",
        help="A folder with services, stacks, sites or experiments of your own.",
        negative=(),
        show_default=False,
    ),
]
Yes = Annotated[
    bool,
    Parameter(
        name="--yes",
        help="Install missing packages without asking.",
        negative=(),
        show_default=False,
    ),
]
ExperimentSettings = Annotated[
    Sequence[str],
    Parameter(
        name="--set",
        help="KEY=VALUE: change a setting of the experiment; may be given again.",
        negative=(),
        show_default=False,
    ),
]
Factors = Annotated[
    Sequence[str],
    Parameter(
        name="--vary",
        help="KEY=LEVEL,LEVEL…: compare at each of these levels of a setting; with several, at "
        "every combination.",
        negative=(),
        show_default=False,
    ),
]
KnobSettings = Annotated[
    Sequence[str],
    Parameter(
        name="--set",
        help="KNOB=VALUE: turn a knob; may be given again.",
        negative=(),
        show_default=False,
    ),
]
GeneratorFlag = Annotated[
    GeneratorName | None,
    Parameter(
        name="--generator",
        help="What makes the load: webdyno's own loadgen, or an instrument of older studies.",
    ),
]
Budget = Annotated[
    str | None, Parameter(name="--budget", help="Time for measuring, such as 90s or 5m.")
]
Precision = Annotated[
    float | None,
    Parameter(
        name="--precision", help="Stop when the ratio is known this well; 0.02 is 2 % either way."
    ),
]
Out = Annotated[
    Path | None,
    Parameter(name="--out", help="Folder of the run, new or empty; else one under runs/."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class BenchFlags:
    """Where an experiment runs."""

    bench: Annotated[
        Literal["this-machine", "netns"] | None,
        Parameter(help="netns: client and servers in network namespaces, joined by a cable."),
    ] = None
    link: Annotated[
        str | None, Parameter(help="With --bench netns: what the cable carries, such as 100mbit.")
    ] = None
    delay: Annotated[
        str | None, Parameter(help="With --bench netns: added to a round trip, such as 20ms.")
    ] = None
    loss: Annotated[
        str | None, Parameter(help="With --bench netns: packets lost each way, such as 0.1%.")
    ] = None

    def overrides(self) -> list[Override]:
        """Give the flags as settings of the experiment."""
        return [
            Override(("bench", key), value, self._flag(key)) for key, value in self._given().items()
        ]

    def settings(self) -> BenchSettings:
        """Give the settings of a bench; raise Mistake, naming the flag, where there is one."""
        return build(BenchSettings, self._given(), lambda where: self._flag(*where))

    def _given(self) -> dict[str, str]:
        flags = {"kind": self.bench, "link": self.link, "delay": self.delay, "loss": self.loss}
        return {key: value for key, value in flags.items() if value is not None}

    def _flag(self, key: str | int = "kind") -> str:
        name = "bench" if key == "kind" else key
        return f"--{name} {self._given().get(str(key), 'this-machine')}"


THIS_BENCH = BenchFlags()
