"""Whether stacks, sites and settings fit together."""

from collections.abc import Iterable, Mapping

from webdyno.config.reading import PlaceOf, nearest, shown_value, written_value
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.setting import Setting, SettingValue
from webdyno.core.stack import Site, Stack

PROTOCOL = "protocol"
"""The setting that says what clients speak with a server: the load's protocol decides it."""


def fits(stack: Stack, site: Site) -> bool:
    return site.served_by(stack.serves)


def check_fit(stack: Stack, site: Site, stacks: Iterable[Stack], place: str) -> None:
    """Raise UserError, with the stacks that would do, when a stack can't serve a site."""
    if lacks := site.lacks(stack.serves):
        fitting = [other.name for other in stacks if fits(other, site) and not _is_own(other)]
        raise UserError(
            f"{place}: stack {stack.name} can't serve site {site.name}, which needs "
            f"{' and '.join(lacks)}; stacks that can: {', '.join(fitting) or 'none'}"
        )


def _is_own(stack: Stack) -> bool:
    """Whether it was made of a system on the command line, so that nobody can ask for its name."""
    return stack.services[stack.front].service.own is not None


def settings_of(stack: Stack, site: Site | None) -> dict[str, Setting]:
    """The settings of a stack that serves a site, with those of the site and its data services."""
    served = stack.with_services(site.services) if site else stack
    own = {name: target.setting for name, target in served.exposed_settings().items()}
    return own | (site.settings if site else {})


def check_setting(
    stack: Stack,
    site: Site | None,
    name: str,
    value: SettingValue,
    place: str,
    *,
    is_alone: bool = False,
) -> None:
    """Raise UserError when stack and site have no such setting, or not this value of it.

    `is_alone`: there is no load, so that the protocol is a setting like others.
    """
    settings = settings_of(stack, site)
    if name == PROTOCOL and name in settings and not is_alone:
        raise UserError(f"{place}: clients must speak it as well; give load.protocol instead")
    if name not in settings:
        raise UserError(
            f"{place}: stack {stack.name} has no setting {name!r}; {nearest(name, settings)}"
        )
    if fault := settings[name].fault(value):
        raise UserError(f"{place}: {name} {fault}, not {shown_value(value)}")


def check_protocol(
    stack: Stack, site: Site, protocol: str, stacks: Mapping[str, Stack], place: PlaceOf
) -> None:
    """Raise UserError, with stacks that would do, when a stack can't speak a load's protocol."""
    if _speaks(stack, site, protocol):
        return
    front = stack.services[stack.front].service
    setting = front.settings.get(PROTOCOL)
    if front.own and setting:
        raise UserError(
            f"{place(('load', 'protocol'))}: {front.title} can't be asked over {protocol} but over "
            f"{setting.range()}"
        )
    if protocol != "http":
        able = [
            each.name
            for each in stacks.values()
            if _speaks(each, site, protocol) and not _is_own(each)
        ]
        raise UserError(
            f"{place(('load', 'protocol'))}: stack {stack.name} can't be asked over {protocol} "
            f"here; stacks that can: {', '.join(able) or 'none'}"
        )


def _speaks(stack: Stack, site: Site, protocol: str) -> bool:
    target = stack.exposed_settings().get(PROTOCOL)
    spoken = protocol == "http" if target is None else target.setting.fault(protocol) is None
    return fits(stack, site) and spoken


def read_settings(
    stack: Stack, texts: Iterable[str], site: Site | None = None
) -> dict[str, SettingValue]:
    """Read `SETTING=VALUE` for a stack, values as in TOML; raise UserError for wrong ones."""
    settings: dict[str, SettingValue] = {}
    for setting in texts:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UserError(f"--set {setting}: should look like SETTING=VALUE, such as workers=2")
        flag = f"--set {setting}"
        value = written_value(text, flag)
        if not isinstance(value, SettingValue):
            raise UserError(f"{flag}: the value of a setting is a number, word, true or false")
        if name in settings:
            raise UserError(f"{flag}: {name} is set twice; give it once")
        check_setting(stack, site, name, value, flag, is_alone=True)
        settings[name] = value
    return settings


def check_headers(
    experiment: Experiment, stacks: Mapping[str, Stack], sites: Mapping[str, Site], place: PlaceOf
) -> None:
    """Raise UserError where variants differ by a setting that no request lets them feel."""
    for variant_name, variant in experiment.variants.items():
        requests = experiment.requests_of(variant_name)
        headers = [
            experiment.load_of(variant_name).headers,
            *(request.headers for request in requests),
        ]
        sent = {name.lower() for each in headers for name in each}
        settings = settings_of(stacks[variant.stack], sites[experiment.site_of(variant_name)])
        for name, value in variant.settings.items():
            header = settings[name].needs_header
            others = (other.settings.get(name) for other in experiment.variants.values())
            if header is None or header.lower() in sent or value == settings[name].default:
                continue
            if any(other != value for other in others):
                raise UserError(
                    f"{place(('variants', variant_name, 'settings', name))}: {name} makes no "
                    f"difference to requests without {header}, and the load sends none; give it "
                    "one with "
                    f'headers.{header} = "…" under [load], or --set load.headers.{header}=…'
                )
