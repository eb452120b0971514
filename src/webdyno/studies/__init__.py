"""Studies that others published: their claims, judged from runs that repeat them."""

from webdyno.studies.claims import judge_claim
from webdyno.studies.table import claim_blocks, markdown

__all__ = ["claim_blocks", "judge_claim", "markdown"]
