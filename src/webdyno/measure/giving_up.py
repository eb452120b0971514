"""Responses that can't be compared end a point before it is measured, or leave variants out."""

from collections.abc import Sequence

from webdyno.comparison import Stop, question_of
from webdyno.core.errors import OperationError
from webdyno.core.judgement import ValidityWarning
from webdyno.core.records import PreflightRecord
from webdyno.load.interface import LoginError
from webdyno.measure.point import RunningPoint
from webdyno.measure.preflight import login_refused
from webdyno.validity.preflight import response_differences


def give_up(point: RunningPoint, number: int, differences: Sequence[ValidityWarning]) -> None:
    """Stop the point, or go on without the variants that answer otherwise, if enough stay."""
    unlike = {
        difference.variant: difference.what
        for difference in reversed(differences)
        if difference.variant is not None
    }
    staying = len(point.racing()) - len(unlike)
    if not question_of(point.experiment).spares_variants or staying < 2 or len(unlike) > staying:
        point.keep_stop(Stop("different-responses", differences[0].what))
        return
    for variant, what in unlike.items():
        point.keep_incident(number, variant, OperationError(what))
        point.progress.notice(f"{what}: the run continues without it")


def refuse_login(point: RunningPoint, number: int, failed: LoginError) -> None:
    """Put on record that a variant didn't let a user in, and give up as the pre-flight check does.

    That check has one user log in; whether the others' passwords are right is known only now.
    """
    (variant,) = (each for each in point.variants if each.name == failed.variant)
    assert variant.users is not None  # noqa: S101 (they logged in)
    responses = {variant.name: [login_refused(variant.users, failed)]}
    refused = PreflightRecord(round=number, responses=responses, facts={}, ran_before=[])
    point.keep(refused)
    give_up(point, number, response_differences(refused, point.experiment))
