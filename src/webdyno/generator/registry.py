"""All load generators by name."""

import re
import subprocess
from collections.abc import Sequence

from webdyno.generator.ab import ApacheBench
from webdyno.generator.httperf import Httperf
from webdyno.generator.instrument import Instrument, Tool
from webdyno.generator.interface import Generator
from webdyno.generator.loadgen import Loadgen, loadgen_version
from webdyno.generator.redis_benchmark import RedisBenchmark
from webdyno.generator.wrk import Wrk
from webdyno.model.experiment import Experiment, GeneratorName
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.paths import spell_out_all
from webdyno.model.service import Need

INSTRUMENTS: dict[str, Tool] = {
    tool.name: tool for tool in (ApacheBench(), Httperf(), Wrk(), RedisBenchmark())
}

_VERSION = re.compile(r"\d+(?:\.\d+)+")


def new_generator(name: GeneratorName, cpus: Sequence[int], entry: Sequence[str] = ()) -> Generator:
    """Give a generator, not started yet; `entry` lets it run in a network of our own."""
    if name == "loadgen":
        return Loadgen(cpus, entry)
    return Instrument(INSTRUMENTS[name], cpus, entry)


def generator_needs(name: GeneratorName) -> list[Need]:
    """Give what a generator needs on the machine beside webdyno itself."""
    return [] if name == "loadgen" else [INSTRUMENTS[name].need]


def generator_version(name: GeneratorName) -> str:
    """Give a generator's name and version, as recorded with a run; raise Trouble if it is missing.

    The instruments say it whatever their exit code.
    """
    if name == "loadgen":
        return loadgen_version()
    words = [name, *INSTRUMENTS[name].version_words]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    except FileNotFoundError:
        package = INSTRUMENTS[name].need.apt
        raise Trouble(f"{name} isn't installed; on Debian: apt-get install {package}") from None
    number = _VERSION.search(said.stdout + said.stderr)
    return f"{name} {number[0]}" if number else name


def check_generator(experiment: Experiment) -> None:
    """Raise Mistake when an experiment's generator can't make its load."""
    if experiment.generator == "loadgen":
        return
    tool = INSTRUMENTS[experiment.generator]
    if fault := tool.fault(experiment.load):
        raise Mistake(f"generator {tool.name} {fault}; or use generator = loadgen, which can")
    for name, arm in experiment.arms.items():
        if len(spell_out_all(arm.paths or [])) > 1:
            raise Mistake(f"generator {tool.name} asks for one path only; arm {name} has more")
