"""A comment holds texts of others: none becomes a mention, a link, a command or markup of it."""

import re
from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from webdyno.core.base import Interval
from webdyno.core.limits import CostGrowth, GateAnswer, GateClaim, GateJudgement
from webdyno.core.text import printable
from webdyno.media.markdown import APART, LINE_ENDS, within, without_markup
from webdyno.questions.gate.comment import GateComment

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PIECES = st.sampled_from(
    [
        *("@octocat", "&commat;octocat", "&#64;octocat", "#1", "GH-1", "a/b#2", "!3", "~bug", "%1"),
        *("https://evil.example", "www.evil.example", "mailto:a@b.example", "<a@b.example>"),
        *("/merge", "/assign @me", "\n/close", "\r/close", "\u2028/close", "\v/label ~bug"),
        *("<img src=x onerror=alert(1)>", "</details>", "<!--", "-->", "[x](http://evil.example)"),
        *("![x](y)", "[x]: http://evil.example", "`", "``", "```\n", "|", "\\", "\\|", "*", "_"),
        *("---", "===", "# ", "1. ", "- ", "+ ", "    ", "\t", "&", "&lt;", "$1", "^alert#1"),
        *("[vulnerability:1]", "*iteration:1", '~"a b"', "&1", "\n", " ", "a", "1", ""),
        *("GL-1", "_www.evil.example", "a@-b.example", "a@.b.example"),
    ]
)
HOSTILE = st.lists(PIECES | st.text(max_size=5), max_size=6).map("".join)
REFERENCE = re.compile(
    r"@[\w.-]|[#!$%~&][\w\"']|\^alert#|G[HL]-\d|\[\w+:\d|\*iteration:|://|www\.", re.IGNORECASE
)
TAGS = {"table", "thead", "tbody", "tr", "th", "td", "h3", "p", "ul", "li", "strong", "br"}
OURS = {"details", "summary", "hr", "code"}


class Page(HTMLParser):
    """What a renderer made of a comment."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.said: list[str] = []
        self.feed(RENDERER.render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def handle_comment(self, data: str) -> None:
        self.tags.append(f"comment {data}")


def shown(text: str) -> str:
    return LINE_ENDS.sub(" ", printable(text)).strip()


@given(HOSTILE)
@example("&commat;octocat #1 https://evil.example")
@example("/merge")
@example("_www.evil.example ~www.evil.example a@-b.example GL-1")
def test_a_text_of_others_is_shown_as_it_is_and_is_nothing_else(text: str) -> None:
    for markdown in (without_markup(text), f"| {within(text)} |\n| --- |\n| {within(text)} |"):
        page = Page(markdown)
        assert set(page.tags) <= TAGS - {"h3", "ul", "li", "strong", "br"}, markdown
        assert not any(map(REFERENCE.search, page.said)), markdown
        assert not re.search(r"^\s*/", markdown, re.MULTILINE), markdown
        for said in filter(str.strip, page.said):
            assert said.replace(APART, "").strip() == shown(text).replace(APART, "").strip()


@given(*[HOSTILE] * 6)
def test_a_comment_has_no_markup_of_others(
    headline: str, endpoint: str, why: str, note: str, commits: str, baseline: str
) -> None:
    claim = GateClaim(
        endpoint=endpoint,
        metric="server_cpu_us",
        tolerance=0.05,
        answer="worse",
        because="beyond-limit",
        why=why,
        worse=Interval(low=1.18, estimate=1.2, high=1.22),
        noise=0.01,
        baseline=10.0,
        head=12.0,
        rounds=6,
    )
    gate = GateJudgement(
        answer=GateAnswer.FAIL,
        headline=headline,
        baseline=baseline,
        head=baseline,
        claims=[claim, claim.replace(answer="invalid")],
        notes=[note],
        grew=[CostGrowth(endpoint=endpoint, rounds=0, sampled=None, counted=None, lacking=why)],
        commits=commits,
        took_s=60,
    )
    body = GateComment(gate).body("", "")
    page = Page(body)
    assert set(page.tags) <= TAGS | OURS, body
    assert page.tags.count("details") == 1
    assert body.count("</details>") == 1
    assert not any(map(REFERENCE.search, page.said)), body
    assert not re.search(r"^\s*/", body, re.MULTILINE), body
