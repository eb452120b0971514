"""Studies that others published: their claims, judged from runs that repeat them."""

from webdyno.studies.claims import judge_claim
from webdyno.studies.further import Round, further_blocks, next_round

__all__ = ["Round", "further_blocks", "judge_claim", "next_round"]
