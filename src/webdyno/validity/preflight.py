"""Whether all variants answered the same before the load: different pages can't be compared.

`preflight` has a code for each way in which they don't, such as `wrong-status`, `different-body`
and `no-response`, or `unlike-bodies`, `unlike-tls`, `asked-difference`, `ran-before` and
`other-machine`, which are notes.
"""

import html
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from webdyno.core.experiment import Experiment
from webdyno.core.format import count, latency, number
from webdyno.core.judgement import ValidityWarning
from webdyno.core.records import PreflightRecord, Response
from webdyno.evidence.point_data import PointData
from webdyno.validity.responses import KEEP_RULES, broken_rules, fix_of_status, leads_to
from webdyno.validity.rule import RunRule, note, uncomparable

CORRECT = (
    "See what each sends with `webdyno up` and curl, and correct the site or the server's settings "
    "until all variants answer alike."
)
NO_RESPONSE = "See what it does with `webdyno up` and `curl -v`; its log is in the run's folder."
SET_UP_PHP = "Have the server run such files: set up PHP for it (its module, or PHP-FPM)."
LET_IN = (
    "Correct [[login]] or its [values]; `webdyno up VARIANT` shows at once whether users get in."
)
DIFFERENT = (
    "Correct it, or say by --ignore what may differ, as a regular expression or a place in JSON: "
    "--ignore '$.items[*].id'."
)

PLAIN_PLACE = re.compile(r"(?:\*|\w+)(?:\.(?:\*|\w+))*")
MOST_PLACES = 3
MARKUP = re.compile(r"<(script|style)\b.*?(</\1>|$)|<[^>]*(>|$)", re.DOTALL | re.IGNORECASE)
SOURCE = ("<?php", "<?=")
"""How files begin that a server should run, not send."""
SEE_BODIES = "See with `webdyno up` and curl whether they are the same page."
OTHER_BODIES = (
    "Correct it where that isn't what changed. --same-bodies refuses such revisions, but for what "
    "--ignore names, such as --ignore '$.items[*].id'."
)
SIZE_TOLERANCE = 0.05
"""How much larger one variant's body may be where bodies differ from response to response."""


def _preflight(data: PointData) -> list[ValidityWarning]:
    """Return what the checks show; what several rounds show is reported once."""
    experiment = data.experiment
    warnings: dict[tuple[str, str | None, str], ValidityWarning] = {}
    for preflight in data.preflights:
        for warning in response_differences(preflight, experiment):
            warnings.setdefault((warning.rule, warning.variant, warning.what), warning)
    return [
        *warnings.values(),
        *_unlike_but_allowed(data.preflights, asked_alike(experiment), experiment),
        *_asked_differences(experiment),
        *_unlike_tls(data.preflights, experiment),
        *_ran_before(data),
    ]


PREFLIGHT = RunRule("preflight", _preflight)


def response_differences(
    preflight: PreflightRecord, experiment: Experiment
) -> list[ValidityWarning]:
    """Return what keeps responses from being compared with their site, or with each other."""
    responses = preflight.responses
    by_variant = {name: responses[name] for name in experiment.variants if name in responses}
    alike = {name: responses[name] for name in asked_alike(experiment) if name in responses}
    return [
        *broken_rules(preflight, experiment),
        *_unlike_expected(by_variant),
        *_unlike_each_other(alike, same_bodies=experiment.same_bodies),
    ]


def asked_alike(experiment: Experiment) -> list[str]:
    """Return the baseline and the variants that are asked for the same pages of the same site."""
    pages = {
        variant: (experiment.site_of(variant), experiment.load_of(variant).paths)
        for variant in experiment.variants
    }
    baseline, *_ = experiment.variants
    return [variant for variant in experiment.variants if pages[variant] == pages[baseline]]


def _asked_differences(experiment: Experiment) -> Iterator[ValidityWarning]:
    """Note what the experiment makes differ: the verdict is about that, too."""
    baseline, *others = experiment.variants
    for variant in others:
        declared = declared_differences(experiment, variant, baseline)
        if declared and not experiment.asks.means_to_differ(variant):
            yield note(
                "asked-difference",
                variant,
                f"it differs from {baseline} not by its servers alone, as the experiment asks: "
                f"{'; '.join(declared)}",
                "Read the verdict as one about all of that together.",
            )


def _unlike_tls(
    preflights: Sequence[PreflightRecord], experiment: Experiment
) -> Iterator[ValidityWarning]:
    agreed = {
        variant: next(
            (own.tls for each in preflights for own in each.responses.get(variant, []) if own.tls),
            "",
        )
        for variant in experiment.variants
    }
    baseline, *others = experiment.variants
    for variant in others:
        if agreed[variant] and agreed[baseline] and agreed[variant] != agreed[baseline]:
            yield note(
                "unlike-tls",
                variant,
                f"it agrees upon {agreed[variant]} with a client that leaves the choice to it, "
                f"{baseline} upon {agreed[baseline]}: what they cost differs by that as well",
                "Give both the same tls_version and tls_cipher, where they have such settings.",
            )


def _ran_before(data: PointData) -> Iterator[ValidityWarning]:
    """Note what is only observed: on another machine, or without fresh starts."""
    for variant, trip_s in data.round_trips_s.items():
        yield note(
            "other-machine",
            variant,
            "it runs on another machine, whose CPU and other work aren't known; its latency "
            f"includes the network's round trip ({latency(trip_s * 1e6)})",
            "Measure it on its own machine for CPU per request.",
        )
    for variant in data.ran_before:
        yield note(
            "ran-before",
            variant,
            "it ran before webdyno came and isn't started again in each round, so that this is an "
            "observation: what differs from start to start (memory layout, caches, what it did "
            "before) is in the ratio, but not in its interval",
            "Have webdyno start it, with cmd: instead of url:, for a comparison of fresh starts.",
        )


def declared_differences(experiment: Experiment, variant: str, other: str) -> list[str]:
    """Return settings of site, load and testbed in which two variants differ: `site: a, not b`."""
    mine, theirs = (_settings_of(experiment, name) for name in (variant, other))
    return [
        f"{key}: {_value_words(mine.get(key))}, not {_value_words(theirs.get(key))}"
        for key in mine | theirs
        if mine.get(key) != theirs.get(key)
    ]


def _settings_of(experiment: Experiment, variant: str) -> dict[str, object]:
    load, testbed = experiment.load_of(variant), experiment.testbed_of(variant)
    return {
        "site": experiment.site_of(variant),
        **{f"load.{key}": value for key, value in load},
        **{f"testbed.{key}": value for key, value in testbed},
    }


def _value_words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value in (None, {}) else str(value)


def _unlike_expected(by_variant: Mapping[str, list[Response]]) -> Iterator[ValidityWarning]:
    for variant, responses in by_variant.items():
        for index, response in enumerate(responses):
            statuses = {own[index].status for own in by_variant.values() if index < len(own)}
            if fault := _fault_of(response, statuses):
                rule, what, fix = fault
                yield uncomparable(rule, variant, f"variant {variant} {what}", fix)


def _fault_of(response: Response, statuses: Collection[int | None]) -> tuple[str, str, str] | None:
    """Return the rule that a response breaks, in words and with a fix.

    `statuses`: those of all variants' responses to the same request.
    """
    path, answered = response.path, f"answered {response.path}"
    if response.is_login:
        return "login-failed", f"didn't let a user in: {path}: {response.error}", LET_IN
    if response.status is None:
        why = response.error or "no reason"
        return "no-response", f"gave no usable response to {path}: {why}", NO_RESPONSE
    if not response.has_right_status:
        right = response.expected_status or "a status from 200 to 299"
        what = f"answered {response.status} to {path}, {right} was expected"
        what += leads_to(response) or _begins(response)
        return "wrong-status", what, fix_of_status(response, statuses)
    if _is_source(response):
        begins = f"{_beginning(response)!r:.80}"
        what = f"{answered} with the source of a program, not with what it gives: {begins}"
        return "source-code", what, SET_UP_PHP
    if response.lacks is not None:
        what = f"{answered} without {response.lacks!r:.60}, which its response should contain; it "
        return "different-body", f"{what}begins with {response.body_start!r:.80}", CORRECT
    if response.lacks_header is not None:
        what = f"{answered} without the right header {response.lacks_header}"
        return "missing-header", what, KEEP_RULES
    if response.expected_sha256 not in {None, response.body_sha256}:
        size = count(response.body_bytes, "byte")
        if response.expected_bytes not in {None, response.body_bytes}:
            size += f", {number(response.expected_bytes)} were expected"
        return "different-body", f"{answered} with another body than the site's ({size})", CORRECT
    return None


def _unlike_each_other(
    by_variant: dict[str, list[Response]], *, same_bodies: bool
) -> Iterator[ValidityWarning]:
    """Compare the variants' responses one by one, in the load's order."""
    if not by_variant:
        return
    baseline, *others = by_variant
    for variant in others:
        both, pages = (
            f"variants {baseline} and {variant}",
            (by_variant[baseline], by_variant[variant]),
        )
        if any(response.is_login for own in pages for response in own):
            continue
        if len(pages[0]) != len(pages[1]):
            numbers = f"{len(pages[0])} and {len(pages[1])}"
            what = f"{both} are asked for different numbers of paths: {numbers}"
            yield uncomparable("different-body", variant, what, CORRECT)
            continue
        for ours, theirs in zip(*pages, strict=True):
            if not (_as_expected(ours) and _as_expected(theirs)):
                continue
            answered = f"{both} answered {_paths(ours, theirs)} with different"
            if ours.status != theirs.status:
                what = f"{answered} statuses: {ours.status} and {theirs.status}"
                yield uncomparable("wrong-status", variant, what, CORRECT)
            elif not _may_be_compared(ours, theirs, same_bodies=same_bodies):
                what = f"{answered} bodies: {_sizes(baseline, ours, variant, theirs)}"
                yield uncomparable("different-body", variant, what, DIFFERENT)


def _unlike_but_allowed(
    preflights: Sequence[PreflightRecord], variants: Sequence[str], experiment: Experiment
) -> Iterator[ValidityWarning]:
    """Note pages whose bodies differ between variants, where the site doesn't say what is right.

    Not those that differ from response to response of one variant, as a date makes them.
    """
    baseline, *others = variants
    for variant in others:
        unlike: dict[str, str] = {}
        varying: set[str] = set()
        sums: dict[tuple[str, int], str] = {}
        for preflight in preflights:
            both = (preflight.responses.get(name, []) for name in (baseline, variant))
            for index, (ours, theirs) in enumerate(zip(*both, strict=False)):
                paths = _paths(ours, theirs)
                free = ours.expected_sha256 is None and theirs.expected_sha256 is None
                free = free and not theirs.has_rules
                comparable = _may_be_compared(ours, theirs, same_bodies=experiment.same_bodies)
                if free and ours.body_sha256 != theirs.body_sha256 and comparable:
                    sizes = _sizes(baseline, ours, variant, theirs)
                    unlike.setdefault(paths, sizes + _what_to_ignore(theirs))
                for name, response in ((baseline, ours), (variant, theirs)):
                    if sums.setdefault((name, index), response.body_sha256) != response.body_sha256:
                        varying.add(paths)
        differing = {paths: sizes for paths, sizes in unlike.items() if paths not in varying}
        if differing:
            paths, sizes = next(iter(differing.items()))
            more = f", and {count(len(differing) - 1, 'other path')}" if len(differing) > 1 else ""
            yield note(
                "unlike-bodies",
                variant,
                f"it answered {paths} with another body than {baseline} ({sizes}){more}; the site "
                "doesn't say which is right, so both count",
                SEE_BODIES if experiment.same_bodies else OTHER_BODIES,
            )


def _what_to_ignore(response: Response) -> str:
    """Return where values of JSON differ alone, as the flag that excludes them."""
    places = [place for place in response.fields_other if PLAIN_PLACE.fullmatch(place)]
    is_all = not (response.fields_more or response.fields_less)
    if not places or not is_all or len(places) > MOST_PLACES:
        return ""
    paths = (f"$.{place}".replace(".*", "[*]") for place in places)
    flags = " ".join(f"--ignore '{path}'" for path in paths)
    times = ", which are times that set-up made," if response.others_are_times else ""
    return f"; {', '.join(places)} alone differ{times} and {flags} lets them"


def _as_expected(response: Response) -> bool:
    """Whether a response is what its site promises; if not, that has been reported already."""
    return (
        response.has_right_status
        and not response.is_login
        and response.lacks is None
        and response.lacks_header is None
        and response.expected_sha256 in {None, response.body_sha256}
    )


def _is_source(response: Response) -> bool:
    """Whether a PHP file was sent as it is, where nobody says that this is right."""
    is_promised = response.expected_sha256 is not None and _as_expected(response)
    return not is_promised and _beginning(response).lower().startswith(SOURCE)


def _beginning(response: Response) -> str:
    return response.body_start.lstrip("\ufeff \r\n\t")


def _may_be_compared(one: Response, other: Response, *, same_bodies: bool) -> bool:
    """Whether two responses, each of them right, may be measured against each other."""
    if one.has_rules and other.has_rules:
        return True
    free = one.expected_sha256 is None and other.expected_sha256 is None
    return (free and not same_bodies) or _alike(one, other)


def _alike(one: Response, other: Response) -> bool:
    """Whether two bodies are the same, or of about one size where the site lets them vary."""
    if one.expected_sha256 or other.expected_sha256:
        return one.body_sha256 == other.body_sha256
    smaller, larger = sorted((one.body_bytes, other.body_bytes))
    return larger <= smaller * (1 + SIZE_TOLERANCE)


def _begins(response: Response) -> str:
    body = response.body_start
    if body.lstrip().startswith("<"):  # a page: its words without the markup
        body = html.unescape(MARKUP.sub(" ", body))
    start = " ".join(body.split())
    return f"; it says {start!r:.160}" if start else ""


def _paths(ours: Response, theirs: Response) -> str:
    return " and ".join(dict.fromkeys((ours.path, theirs.path)))


def _sizes(baseline: str, ours: Response, variant: str, theirs: Response) -> str:
    """Return the sizes of two bodies, and how their lines differ where that is on record."""
    sizes = f"{number(ours.body_bytes)} and {count(theirs.body_bytes, 'byte')}"
    lines = theirs.unlike or ours.unlike
    return sizes + (f" (- {baseline}, + {variant}):\n" + "\n".join(lines) if lines else "")
