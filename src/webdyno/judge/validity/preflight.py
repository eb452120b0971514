"""Whether all arms answered the same before the load: different pages can't be compared."""

import html
import re
from collections.abc import Iterator, Sequence

from webdyno.judge.point_data import PointData
from webdyno.judge.validity.answers import fix_of_status, leads_to
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, number
from webdyno.model.judgement import ValidityWarning
from webdyno.model.records import Answer, PreflightRecord

CORRECT = (
    "See what each sends with `webdyno up` and curl, and correct the site or the server's settings "
    "until all arms answer alike."
)
NO_ANSWER = "See what it does with `webdyno up` and `curl -v`; its log is in the run's folder."
DIFFERENT = (
    "Correct it, or say by --ignore what may differ, as a regular expression or a place in JSON: "
    "--ignore '$.items[*].id'."
)

MARKUP = re.compile(r"<(script|style)\b.*?(</\1>|$)|<[^>]*(>|$)", re.DOTALL | re.IGNORECASE)
SOURCE = ("<?php", "<?=")
"""How files begin that a server should run, not send."""

SEE_BODIES = (
    "See with `webdyno up` and curl whether they are the same page. To have them compared byte by "
    "byte, give the path its body_sha256 in the site's `site.toml`."
)
OTHER_BODIES = (
    "Correct it where that isn't what changed. --same-bodies refuses such revisions, but for what "
    "--ignore names, such as --ignore '$.items[*].id'."
)

SIZE_TOLERANCE = 0.05
"""How much larger one arm's body may be where bodies may differ from answer to answer."""


def _preflight(data: PointData) -> list[ValidityWarning]:
    """Give what the checks show; what several blocks show is told once."""
    experiment = data.experiment
    found: dict[tuple[str, str | None, str], ValidityWarning] = {}
    for preflight in data.preflights:
        for warning in answer_differences(preflight, experiment):
            found.setdefault((warning.rule, warning.arm, warning.what), warning)
    alike = asked_alike(experiment)
    return [
        *found.values(),
        *_unlike_but_allowed(data.preflights, alike, experiment),
        *_asked_differences(experiment),
        *_unlike_tls(data.preflights, experiment),
        *_ran_before(data.preflights),
    ]


PREFLIGHT = RunRule("preflight", _preflight)


def answer_differences(preflight: PreflightRecord, experiment: Experiment) -> list[ValidityWarning]:
    """Give what keeps the arms' answers from being compared.

    Arms that are asked for other pages than the baseline are only held to what their site promises.
    """
    by_arm = {arm: preflight.answers[arm] for arm in experiment.arms if arm in preflight.answers}
    alike = {arm: by_arm[arm] for arm in asked_alike(experiment) if arm in by_arm}
    same_bodies = experiment.same_bodies
    return [*_unlike_expected(by_arm), *_unlike_each_other(alike, same_bodies=same_bodies)]


def asked_alike(experiment: Experiment) -> list[str]:
    """Name the baseline and the arms that are asked for the same pages of the same site."""
    pages = {
        arm: (experiment.site_of(arm), experiment.load_of(arm).paths) for arm in experiment.arms
    }
    baseline, *_ = experiment.arms
    return [arm for arm in experiment.arms if pages[arm] == pages[baseline]]


def _asked_differences(experiment: Experiment) -> Iterator[ValidityWarning]:
    """Note what differs because the question says so: the verdict is about that, too.

    Of an arm that has less of one thing on purpose that is the question.
    """
    baseline, *others = experiment.arms
    for arm in others:
        if arm in experiment.interventions:
            continue
        if told := declared_differences(experiment, arm, baseline):
            yield note(
                "asked-difference",
                arm,
                f"it differs from {baseline} not by its servers alone, as the experiment asks: "
                f"{'; '.join(told)}",
                "Read the verdict as being about all of that together.",
            )


def _unlike_tls(
    preflights: Sequence[PreflightRecord], experiment: Experiment
) -> Iterator[ValidityWarning]:
    """Note arms that agree upon another version of TLS or another cipher than the baseline."""
    agreed = {
        arm: next((it.tls for each in preflights for it in each.answers.get(arm, []) if it.tls), "")
        for arm in experiment.arms
    }
    baseline, *others = experiment.arms
    for arm in others:
        if agreed[arm] and agreed[baseline] and agreed[arm] != agreed[baseline]:
            yield note(
                "unlike-tls",
                arm,
                f"it agrees upon {agreed[arm]} with a client that leaves the choice to it, "
                f"{baseline} upon {agreed[baseline]}: what they cost differs by that as well",
                "Give both the same tls_version and tls_cipher, where they have such knobs.",
            )


def _ran_before(preflights: Sequence[PreflightRecord]) -> Iterator[ValidityWarning]:
    """Note what is watched only: its blocks are no fresh starts, so that they are too alike."""
    for arm in dict.fromkeys(arm for it in preflights for arm in it.ran_before):
        yield note(
            "ran-before",
            arm,
            "it ran before webdyno came and isn't started anew in each block, so that this is an "
            "observation: what differs from start to start (memory layout, caches, what it did "
            "before) is in the ratio, but not in its interval",
            "Have webdyno start it, with cmd: instead of url:, for a comparison of fresh starts.",
        )


def declared_differences(experiment: Experiment, arm: str, other: str) -> list[str]:
    """Say in which settings of site, load and bench two arms differ: `load.paths: /a, not /b`."""
    both = [_settings_of(experiment, name) for name in (arm, other)]
    return [
        f"{key}: {_shown(both[0].get(key))}, not {_shown(both[1].get(key))}"
        for key in dict.fromkeys((*both[0], *both[1]))
        if both[0].get(key) != both[1].get(key)
    ]


def _settings_of(experiment: Experiment, arm: str) -> dict[str, object]:
    load, bench = experiment.load_of(arm), experiment.bench_of(arm)
    return {
        "site": experiment.site_of(arm),
        **{f"load.{key}": value for key, value in load},
        **{f"bench.{key}": value for key, value in bench},
    }


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value in (None, {}) else str(value)


def _unlike_expected(by_arm: dict[str, list[Answer]]) -> Iterator[ValidityWarning]:
    for arm, answers in by_arm.items():
        for at, answer in enumerate(answers):
            if answer.status is None:
                yield _warning(
                    "no-answer",
                    arm,
                    f"arm {arm} gave no usable answer to {answer.path}: "
                    f"{answer.error or 'no reason'}",
                    NO_ANSWER,
                )
            elif not answer.has_right_status:
                wanted = answer.expected_status or "a status from 200 to 299"
                yield _warning(
                    "wrong-status",
                    arm,
                    f"arm {arm} answered {answer.status} to {answer.path}, {wanted} was expected"
                    f"{leads_to(answer) or _begins(answer)}",
                    fix_of_status(
                        answer, {it[at].status for it in by_arm.values() if at < len(it)}
                    ),
                )
            elif _is_source(answer):
                yield _warning(
                    "source-code",
                    arm,
                    f"arm {arm} answered {answer.path} with the source of a program, not with what "
                    f"it gives: {_beginning(answer)!r:.80}",
                    "Have the server run such files: set up PHP for it (its module, or PHP-FPM).",
                )
            elif answer.lacks is not None:
                yield _warning(
                    "different-body",
                    arm,
                    f"arm {arm} answered {answer.path} without {answer.lacks!r:.60}, which its "
                    f"answer should contain; it begins with {answer.body_start!r:.80}",
                )
            elif answer.expected_sha256 not in {None, answer.body_sha256}:
                expected = (
                    ""
                    if answer.expected_bytes in {None, answer.body_bytes}
                    else f", {number(answer.expected_bytes)} were expected"
                )
                yield _warning(
                    "different-body",
                    arm,
                    f"arm {arm} answered {answer.path} with another body than the site's "
                    f"({count(answer.body_bytes, 'byte')}{expected})",
                )


def _unlike_each_other(
    by_arm: dict[str, list[Answer]], *, same_bodies: bool
) -> Iterator[ValidityWarning]:
    """Compare the arms' answers one by one, in the order in which the load asks for them."""
    if not by_arm:
        return
    baseline, *others = by_arm
    for arm in others:
        if len(by_arm[baseline]) != len(by_arm[arm]):
            yield _warning(
                "different-body",
                arm,
                f"arms {baseline} and {arm} are asked for different numbers of paths: "
                f"{len(by_arm[baseline])} and {len(by_arm[arm])}",
            )
            continue
        for ours, theirs in zip(by_arm[baseline], by_arm[arm], strict=True):
            if not (_as_expected(ours) and _as_expected(theirs)):
                continue
            paths = " and ".join(dict.fromkeys((ours.path, theirs.path)))
            if ours.status != theirs.status:
                yield _warning(
                    "wrong-status",
                    arm,
                    f"arms {baseline} and {arm} answered {paths} with different statuses: "
                    f"{ours.status} and {theirs.status}",
                )
            elif not _may_be_compared(ours, theirs, same_bodies=same_bodies):
                yield _warning(
                    "different-body",
                    arm,
                    f"arms {baseline} and {arm} answered {paths} with different bodies: "
                    f"{number(ours.body_bytes)} and {count(theirs.body_bytes, 'byte')}"
                    f"{_diff(baseline, ours, arm, theirs)}",
                    DIFFERENT,
                )


def _unlike_but_allowed(
    preflights: Sequence[PreflightRecord], arms: Sequence[str], experiment: Experiment
) -> Iterator[ValidityWarning]:
    """Note pages whose bodies differ from arm to arm, where the site doesn't say what is right.

    Pages that also differ from answer to answer of the same arm, as those with a date or a random
    number do, are what the site's freedom is for, and not worth a word.
    """
    baseline, *others = arms
    for arm in others:
        unlike: dict[str, str] = {}
        varying: set[str] = set()
        sums: dict[tuple[str, int], str] = {}
        for preflight in preflights:
            both = (preflight.answers.get(name, []) for name in (baseline, arm))
            for at, (ours, theirs) in enumerate(zip(*both, strict=False)):
                paths = " and ".join(dict.fromkeys((ours.path, theirs.path)))
                free = ours.expected_sha256 is None and theirs.expected_sha256 is None
                comparable = _may_be_compared(ours, theirs, same_bodies=experiment.same_bodies)
                if free and ours.body_sha256 != theirs.body_sha256 and comparable:
                    sizes = f"{number(ours.body_bytes)} and {count(theirs.body_bytes, 'byte')}"
                    unlike.setdefault(paths, sizes + _diff(baseline, ours, arm, theirs))
                for name, answer in ((baseline, ours), (arm, theirs)):
                    if sums.setdefault((name, at), answer.body_sha256) != answer.body_sha256:
                        varying.add(paths)
        told = {paths: sizes for paths, sizes in unlike.items() if paths not in varying}
        if told:
            paths, sizes = next(iter(told.items()))
            more = f", and {count(len(told) - 1, 'other path')}" if len(told) > 1 else ""
            yield note(
                "unlike-bodies",
                arm,
                f"it answered {paths} with another body than {baseline} ({sizes}){more}; the site "
                "doesn't say which is right, so both count",
                SEE_BODIES if experiment.same_bodies else OTHER_BODIES,
            )


def _as_expected(answer: Answer) -> bool:
    """Whether an answer is what its site promises; if not, that has been told of already."""
    return (
        answer.has_right_status
        and answer.lacks is None
        and answer.expected_sha256 in {None, answer.body_sha256}
    )


def _is_source(answer: Answer) -> bool:
    """Whether a PHP file was sent as it is, where nobody says that this is right."""
    is_promised = answer.expected_sha256 is not None and _as_expected(answer)
    return not is_promised and _beginning(answer).lower().startswith(SOURCE)


def _beginning(answer: Answer) -> str:
    return answer.body_start.lstrip("\ufeff \r\n\t")


def _may_be_compared(one: Answer, other: Answer, *, same_bodies: bool) -> bool:
    """Whether two answers, each of them right, may be measured against each other."""
    free = one.expected_sha256 is None and other.expected_sha256 is None
    return (free and not same_bodies) or _alike(one, other)


def _alike(one: Answer, other: Answer) -> bool:
    """Whether two bodies are the same, or of about one size where the site lets them vary."""
    if one.expected_sha256 or other.expected_sha256:
        return one.body_sha256 == other.body_sha256
    smaller, larger = sorted((one.body_bytes, other.body_bytes))
    return larger <= smaller * (1 + SIZE_TOLERANCE)


def _begins(answer: Answer) -> str:
    start = " ".join(_in_words(answer.body_start).split())
    return f"; it says {start!r:.160}" if start else ""


def _in_words(body: str) -> str:
    """Give a page's words without its markup, and anything else as it is."""
    if not body.lstrip().startswith("<"):
        return body
    return html.unescape(MARKUP.sub(" ", body))


def _diff(baseline: str, ours: Answer, arm: str, theirs: Answer) -> str:
    """Show what is other, line by line, where that is on record."""
    lines = theirs.unlike or ours.unlike
    return f" (- {baseline}, + {arm}):\n" + "\n".join(lines) if lines else ""


def _warning(rule: str, arm: str, what: str, fix: str = CORRECT) -> ValidityWarning:
    return ValidityWarning(
        rule=rule,
        severity="invalid",
        arm=arm,
        what=what,
        fix=fix,
    )
