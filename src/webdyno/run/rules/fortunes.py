"""The rule of `fortunes`: all rows, one more, sorted, escaped and shown in a table."""

from html.parser import HTMLParser

from webdyno.run.rules.program import BrokenRule, CheckedProgram

PATH = "/fortunes"
ADDED = (0, "Additional fortune added at request time.")
HEAD = ["id", "message"]
ELEMENTS = {"html", "head", "meta", "title", "body", "table", "thead", "tbody", "tr", "th", "td"}
INSERT = "INSERT INTO fortune VALUES (9001, 'Caches show this too late & <b>unescaped</b>.')"
REMOVE = "DELETE FROM fortune WHERE id = 9001"


def fortunes(program: CheckedProgram) -> None:
    """Show what the database holds now."""
    _check_page(program)
    program.known.rows(INSERT)
    try:
        _check_page(program)
    finally:
        program.known.rows(REMOVE)


def _held(program: CheckedProgram) -> list[tuple[int, str]]:
    # A message may have a | in it, which divides values.
    rows = program.known.rows("SELECT id, message FROM fortune")
    return [(int(number), "|".join(message)) for number, *message in rows]


def _check_page(program: CheckedProgram) -> None:
    held = _held(program)
    with program.reading(1, f"GET {PATH}", one_row_each=False):
        answer = program.ask(PATH).with_status(200)
    page = _Page()
    page.feed(answer.said.body.decode("utf-8", "replace"))
    page.close()
    if page.begin.lower() != "doctype html":
        raise BrokenRule(f"{answer.to} should begin with <!DOCTYPE html>: {answer.begin!r}")
    if unknown := page.tags - ELEMENTS:
        raise BrokenRule(
            f"{answer.to} has the element <{min(unknown)}>, which only a message has in its text: "
            "messages have to be escaped"
        )
    if page.rows[:1] != [HEAD]:
        raise BrokenRule(f"{answer.to}: its table should begin with the row id, message")
    shown = page.rows[1:]
    right = [[str(number), text] for number, text in sorted([ADDED, *held], key=lambda row: row[1])]
    if [str(ADDED[0]), ADDED[1]] not in shown:
        raise BrokenRule(
            f"{answer.to} lacks the row {ADDED[0]}, {ADDED[1]!r}, which the program adds to those "
            "of the database for each request"
        )
    if sorted(shown) == sorted(right) and shown != right:
        at = next(
            at for at, (one, other) in enumerate(zip(shown, right, strict=True)) if one != other
        )
        raise BrokenRule(
            f"{answer.to} isn't sorted by message, by code points: row {at + 1} should be "
            f"{right[at][1]!r:.60}, and is {shown[at][1]!r:.60}"
        )
    if shown != right:
        unlike = next((row for row in right if row not in shown), None) or shown[-1]
        raise BrokenRule(
            f"{answer.to} should show {len(right)} rows as the database holds them, and shows "
            f"{len(shown)}; {unlike[1]!r:.80} is missing, or shown otherwise"
        )


class _Page(HTMLParser):
    """Reads a page's table: the texts of its cells, entities resolved."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.begin = ""
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self._is_cell = False

    def handle_decl(self, decl: str) -> None:
        self.begin = self.begin or decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"} and self.rows:
            self.rows[-1].append("")
            self._is_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._is_cell = False

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.rows[-1][-1] += data
