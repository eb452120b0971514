"""Studies that others published: their claims, judged from runs that repeat them."""

from webdyno.studies.claims import judge_claim
from webdyno.studies.further import Round, further_blocks, next_round
from webdyno.studies.table import claim_blocks, markdown

__all__ = ["Round", "claim_blocks", "further_blocks", "judge_claim", "markdown", "next_round"]
