"""Whether stacks, sites and knobs fit together."""

import tomllib
from collections.abc import Iterable

from webdyno.definitions.near import nearest
from webdyno.model.knob import Knob, KnobValue
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


def knobs_of(stack: Stack, site: Site | None) -> dict[str, Knob]:
    """The knobs of a stack that serves a site, those of the site and its data services included."""
    served = stack.with_services(site.services) if site else stack
    own = {name: target.knob for name, target in served.exposed_knobs().items()}
    return own | (site.knobs if site else {})


def check_knob(stack: Stack, site: Site | None, name: str, value: KnobValue, place: str) -> None:
    """Raise Mistake when stack and site have no such knob, or not this value of it."""
    knobs = knobs_of(stack, site)
    if name not in knobs:
        raise Mistake(f"{place}: stack {stack.name} has no knob {name!r}; {nearest(name, knobs)}")
    if fault := knobs[name].fault(value):
        raise Mistake(f"{place}: knob {name} {fault}, not {value!r}")


def read_knobs(
    stack: Stack, settings: Iterable[str], site: Site | None = None
) -> dict[str, KnobValue]:
    """Read `KNOB=VALUE` settings for a stack, values as in TOML; raise Mistake for wrong ones."""
    knobs: dict[str, KnobValue] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise Mistake(f"--set {setting}: should look like KNOB=VALUE, such as workers=2")
        value = toml_value(text)
        if not isinstance(value, KnobValue):
            raise Mistake(f"--set {setting}: the value of a knob is a number, word, true or false")
        check_knob(stack, site, name, value, f"--set {setting}")
        knobs[name] = value
    return knobs


def toml_value(text: str) -> object:
    """Read a value as TOML has it; what isn't TOML is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
