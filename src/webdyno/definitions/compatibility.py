"""Whether stacks, sites and knobs fit together."""

from collections.abc import Iterable, Mapping

from webdyno.definitions.toml_file import PlaceOf
from webdyno.definitions.validation import nearest, shown_value, written_value
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment
from webdyno.model.knob import Knob, KnobValue
from webdyno.model.stack import Site, Stack

PROTOCOL = "protocol"
"""The knob that says what clients speak with a server: the load's protocol turns it."""


def fits(stack: Stack, site: Site) -> bool:
    return site.served_by(stack.serves)


def check_fit(stack: Stack, site: Site, stacks: Iterable[Stack], place: str) -> None:
    """Raise UserError, with the stacks that would do, when a stack can't serve a site."""
    if lacks := site.lacks(stack.serves):
        fitting = [other.name for other in stacks if fits(other, site)]
        raise UserError(
            f"{place}: stack {stack.name} can't serve site {site.name}, which needs "
            f"{' and '.join(lacks)}; stacks that can: {', '.join(fitting) or 'none'}"
        )


def knobs_of(stack: Stack, site: Site | None) -> dict[str, Knob]:
    """The knobs of a stack that serves a site, those of the site and its data services included."""
    served = stack.with_services(site.services) if site else stack
    own = {name: target.knob for name, target in served.exposed_knobs().items()}
    return own | (site.knobs if site else {})


def check_knob(
    stack: Stack,
    site: Site | None,
    name: str,
    value: KnobValue,
    place: str,
    *,
    is_alone: bool = False,
) -> None:
    """Raise UserError when stack and site have no such knob, or not this value of it.

    `is_alone`: there is no load, so that the protocol is a knob like others.
    """
    knobs = knobs_of(stack, site)
    if name == PROTOCOL and name in knobs and not is_alone:
        raise UserError(f"{place}: clients must speak it as well; give load.protocol instead")
    if name not in knobs:
        raise UserError(f"{place}: stack {stack.name} has no knob {name!r}; {nearest(name, knobs)}")
    if fault := knobs[name].fault(value):
        raise UserError(f"{place}: {name} {fault}, not {shown_value(value)}")


def check_protocol(
    stack: Stack, site: Site, protocol: str, stacks: Mapping[str, Stack], place: PlaceOf
) -> None:
    """Raise UserError, with stacks that would do, when a stack can't speak a load's protocol."""
    if _speaks(stack, site, protocol):
        return
    front = stack.services[stack.front].service
    knob = front.knobs.get(PROTOCOL)
    if front.own and knob:
        raise UserError(
            f"{place(('load', 'protocol'))}: {front.title} can't be asked over {protocol} but over "
            f"{knob.range()}"
        )
    if protocol != "http":
        able = [each.name for each in stacks.values() if _speaks(each, site, protocol)]
        raise UserError(
            f"{place(('load', 'protocol'))}: stack {stack.name} can't be asked over {protocol} "
            f"here; stacks that can: {', '.join(able) or 'none'}"
        )


def _speaks(stack: Stack, site: Site, protocol: str) -> bool:
    knob = stack.exposed_knobs().get(PROTOCOL)
    spoken = protocol == "http" if knob is None else knob.knob.fault(protocol) is None
    return fits(stack, site) and spoken


def read_knobs(
    stack: Stack, settings: Iterable[str], site: Site | None = None
) -> dict[str, KnobValue]:
    """Read `KNOB=VALUE` settings for a stack, values as in TOML; raise UserError for wrong ones."""
    knobs: dict[str, KnobValue] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: should look like KNOB=VALUE, such as workers=2")
        flag = f"--set {setting}"
        value = written_value(text, flag)
        if not isinstance(value, KnobValue):
            raise UserError(f"{flag}: the value of a knob is a number, word, true or false")
        if name in knobs:
            raise UserError(f"{flag}: {name} is set twice; give it once")
        check_knob(stack, site, name, value, flag, is_alone=True)
        knobs[name] = value
    return knobs


def check_headers(
    experiment: Experiment, stacks: Mapping[str, Stack], sites: Mapping[str, Site], place: PlaceOf
) -> None:
    """Raise UserError where arms differ by a knob that no request of the load lets them feel."""
    for arm_name, arm in experiment.arms.items():
        requests = experiment.requests_of(arm_name)
        headers = [experiment.load_of(arm_name).headers, *(it.headers for it in requests)]
        sent = {name.lower() for each in headers for name in each}
        knobs = knobs_of(stacks[arm.stack], sites[experiment.site_of(arm_name)])
        for name, value in arm.knobs.items():
            header = knobs[name].needs_header
            others = (other.knobs.get(name) for other in experiment.arms.values())
            if header is None or header.lower() in sent or value == knobs[name].default:
                continue
            if any(other != value for other in others):
                raise UserError(
                    f"{place(('arms', arm_name, 'knobs', name))}: {name} makes no difference to "
                    f"requests without {header}, and the load sends none; give it one with "
                    f'headers.{header} = "…" under [load], or --set load.headers.{header}=…'
                )
