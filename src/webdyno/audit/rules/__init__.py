"""What can't be believed, and why: rules about one output, and rules about a whole text."""

from webdyno.audit.document import Document
from webdyno.audit.rules import answers, connections, figures, prose, samples, sides, tables
from webdyno.audit.rules.rule import Evidence, Rule, Seen
from webdyno.readers.output import Output

OUTPUT_RULES: tuple[Rule[Output], ...] = (
    *answers.RULES,
    *connections.RULES,
    *figures.RULES,
    *samples.RULES,
)

DOCUMENT_RULES: tuple[Rule[Document], ...] = (*sides.RULES, *tables.RULES, *prose.RULES)

__all__ = ["DOCUMENT_RULES", "OUTPUT_RULES", "Evidence", "Rule", "Seen"]
