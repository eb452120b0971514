"""Whether stacks, sites and knobs fit together."""

import tomllib
from collections.abc import Iterable, Mapping

from webdyno.definitions.near import nearest
from webdyno.model.knob import KnobValue
from webdyno.model.mistake import Mistake
from webdyno.model.site import Site
from webdyno.model.stack import Stack


def fits(stack: Stack, site: Site) -> bool:
    """Whether a stack can serve a site."""
    return site.served_by(stack.serves)


def check_fit(stack: Stack, site: Site, stacks: Iterable[Stack], place: str) -> None:
    """Raise Mistake, with the stacks that would do, when a stack can't serve a site."""
    if lacks := site.lacks(stack.serves):
        fitting = [other.name for other in stacks if fits(other, site)]
        raise Mistake(
            f"{place}: stack {stack.name} can't serve site {site.name}, which needs "
            f"{' and '.join(lacks)}; stacks that can: {', '.join(fitting) or 'none'}"
        )


def check_knob(stack: Stack, name: str, value: KnobValue, place: str) -> None:
    """Raise Mistake when a stack has no such knob, or not this value of it."""
    exposed = stack.exposed_knobs()
    if name not in exposed:
        raise Mistake(f"{place}: stack {stack.name} has no knob {name!r}; {nearest(name, exposed)}")
    if fault := exposed[name].knob.fault(value):
        raise Mistake(f"{place}: knob {name} {fault}, not {value!r}")


def read_knobs(stack: Stack, settings: Iterable[str]) -> Mapping[str, KnobValue]:
    """Read `KNOB=VALUE` settings for a stack, values as in TOML; raise Mistake for wrong ones."""
    knobs: dict[str, KnobValue] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise Mistake(f"--set {setting}: should look like KNOB=VALUE, such as workers=2")
        value = toml_value(text)
        if not isinstance(value, KnobValue):
            raise Mistake(f"--set {setting}: the value of a knob is a number, word, true or false")
        check_knob(stack, name, value, f"--set {setting}")
        knobs[name] = value
    return knobs


def toml_value(text: str) -> object:
    """Read a value as TOML has it; what isn't TOML is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
