"""Which of some variants is better: what is asked unless an experiment says otherwise."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator

from webdyno.core.base import SHARE
from webdyno.core.question import OneSidedClaim, QuestionSettings
from webdyno.core.registry import COMPARE


class CompareSettings(QuestionSettings):
    """Nothing but variants."""

    key: ClassVar[str] = COMPARE


FASTER, NOT_SLOWER = "faster", "not-slower-by"


def tolerance_of(claim: str) -> float:
    """Return the share by which `faster` or `not-slower-by 5%` lets it be slower; or ValueError."""
    word, _, amount = claim.strip().partition(" ")
    if word == FASTER and not amount:
        return 0.0
    tolerance = SHARE.read(amount) if word == NOT_SLOWER else None
    if tolerance is None or not 0 < tolerance < 1:
        raise ValueError(
            f"{claim!r} is no question; there are two, 'faster' and 'not-slower-by 5%' (any "
            "share between 0% and 100%)"
        )
    return tolerance


def _claim(text: str) -> str:
    tolerance_of(text)
    return text.strip()


class OneSidedSettings(QuestionSettings):
    """What is claimed of each variant; measuring stops as soon as it is answered."""

    key: ClassVar[str] = "one_sided"

    claim: Annotated[str, AfterValidator(_claim)]
    """`faster` or `not-slower-by 5%`: than the baseline."""

    @property
    def one_sided(self) -> OneSidedClaim:
        """What has to be shown, read."""
        return OneSidedClaim(self.claim, tolerance_of(self.claim))

    @property
    def without_claim(self) -> QuestionSettings:
        """What is asked of the same variants elsewhere, where the claim says nothing."""
        return CompareSettings()
