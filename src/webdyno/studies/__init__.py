"""Studies that others published: their claims, judged from runs that repeat them."""

from webdyno.studies.claims import judge_claim
from webdyno.studies.table import markdown, rich_table

__all__ = ["judge_claim", "markdown", "rich_table"]
