"""Words that must not come back in what people read: docs, help, messages, templates, output.

docs/concepts/glossary.md has the words that stand in their place, CONTRIBUTING.md the style.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources import MODULES, SOURCE, identifiers_of, tree_of

HOME = Path(__file__).parent.parent
SNAPSHOTS = HOME / "tests/report/snapshots"

DENIED = {
    r"\btold\b|\btells?\b": "report, show, say",
    r"\bbeside\b": "next to, compared with",
    r"\banew\b|\bafresh\b": "again",
    r"\bgoes on\b|\bgo on with\b": "continues",
    r"\bmend(s|ed)?\b": "fix; adjusted automatically",
    r"\bspoil(s|t)?\b": "invalidated",
    r"\barms?\b": "variant",
    r"\bblocks?\b": "round",
    r"\bknobs?\b": "setting",
    r"\bfairness\b|\bcertificate of\b": "pre-flight check",
    r"\bhard to tell\b|\b(can't|cannot) tell\b|\bcan't be told\b|\bundecided\b": "inconclusive",
    r"\bleft out\b|\bleave out\b|\bleaving out\b": "excluded",
    r"\blead-ins?\b": "ramp-up",
    r"\bcables?\b": "link",
    r"\bresponse times?\b": "latency",
    r"\bfindings?\b": "warning",
    r"\bduels?\b": "compare",
    r"\bsurely\b": "with 95% confidence",
    r"\btoo little to matter\b": "below the practical threshold",
    r"\bstood still\b|\bheld back\b": "stalled; CPU-starved",
    r"\bdisturb(s|ed|ance|ances)?\b": "interference",
    r"\bdyno: ": "webdyno:",
    r"\d[  ]%": "5%, without a blank",
    r"\bneighbour|\bcolour|\bcatalogue|\bbehaviour|\blicence|\bfavour": "American spelling",
    r"\bwebdyno (duel|why|fleet|export|serve|workload|stacks|studies|calibrate|setup)\b": (
        "a command of today"
    ),
}
"""By pattern: what stands there instead."""

OF_OTHERS = re.compile(
    r"\b(server|location|http|upstream|code|fenced|cipher|file system|disk) blocks?\b"
    r"|\bblock devices?\b|\bblocking\b|display: ?(inline-)?block|\{%-? *(end)?block\b"
    r"|\bdon't block\b|\bwould block\b|\bblocks? (of|in) (requests|nginx|the configuration)\b"
    r"|\bbeside (?:site\.toml)\b",
    re.IGNORECASE,
)
"""The same words where they mean what other programs, and English, mean by them."""


OF_CODE = re.compile(
    r"\b(told|tells?|telling|beside|anew|afresh|arms?|spoil(?:s|t)?|mend(?:s|ed)?)\b", re.IGNORECASE
)
"""Words that identifiers and docstrings don't have either."""
MAY_BE_NAMED = {"tell"}
"""Methods of files that Python calls so."""


def denied_in(text: str) -> Iterator[str]:
    """Say which denied words a text has, with what is around them."""
    cleaned = OF_OTHERS.sub("", text)
    for pattern, instead in DENIED.items():
        for found in re.finditer(pattern, cleaned, re.IGNORECASE):
            around = cleaned[max(0, found.start() - 30) : found.end() + 30]
            yield f"{found[0]!r} in …{' '.join(around.split())}… ({instead})"


def prose_of(page: str) -> str:
    """A page without its code, whose words are those of files and programs."""
    page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    return re.sub(r"`[^`]*`", "", page)


MARKUP = re.compile(r"\{[{%#].*?[}%#]\}|<(script|style).*?</\1>|<[^>]*>", re.DOTALL)
PAGES = [*(HOME / "docs").rglob("*.md"), HOME / "README.md", HOME / "CHANGELOG.md"]
MAY = {
    "CHANGELOG.md": ("→",),
}
"""By page: lines that hold one of these marks name old words to say what became of them."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_docs(page: Path) -> None:
    marks = MAY.get(str(page.relative_to(HOME)), ())
    lines = page.read_text(encoding="utf-8").splitlines()
    kept = "\n".join(line for line in lines if not any(mark in line for mark in marks))
    assert list(denied_in(prose_of(kept))) == []


@pytest.mark.parametrize(
    "output", sorted(SNAPSHOTS.rglob("*.txt")), ids=lambda it: str(it.relative_to(SNAPSHOTS))
)
def test_help_and_output(output: Path) -> None:
    assert list(denied_in(output.read_text(encoding="utf-8"))) == []


def sentences_of(source: Path) -> Iterator[str]:
    """Texts of a module that people may read: what has a blank and isn't a docstring."""
    tree = tree_of(source)
    documents = {id(it.value) for it in ast.walk(tree) if isinstance(it, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in documents and " " in node.value.strip():
            yield node.value


OTHER_PROGRAMS = {
    "audit/rules/columns.py",
    "systems/containers/image.py",
    "systems/conf/lighttpd.py",
    "systems/conf/nginx_read.py",
    "report/tables.py",
    "servers/needs.py",
}
"""Modules whose strings are patterns, scripts, style classes and configurations as well."""


@pytest.mark.parametrize(
    "package",
    sorted({it.parent for it in MODULES} - set((SOURCE / "formats").rglob("*"))),
    ids=lambda it: it.name,
)
def test_messages(package: Path) -> None:
    if package == SOURCE / "formats":
        return  # what other programs print
    found = [
        f"{module.name}: {word}"
        for module in sorted(package.glob("*.py"))
        if module.relative_to(SOURCE).as_posix() not in OTHER_PROGRAMS
        for text in sentences_of(module)
        for word in denied_in(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "template",
    sorted(it for it in SOURCE.rglob("*.html") if "catalog" not in it.parts),
    ids=lambda it: it.name,
)
def test_templates(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert list(denied_in(MARKUP.sub(" ", text))) == []


def docstrings_of(tree: ast.AST) -> Iterator[str]:
    """Docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


@pytest.mark.parametrize("folder", ["src", "tests", "bench"])
def test_identifiers_and_docstrings(folder: str) -> None:
    found = [
        f"{module.relative_to(HOME)}: {word[0]} in {text[:60]}"
        for module in sorted((HOME / folder).rglob("*.py"))
        if "catalog" not in module.parts
        for text in (*identifiers_of(tree_of(module)), *docstrings_of(tree_of(module)))
        for word in OF_CODE.finditer(text.replace("_", " "))
        if text not in MAY_BE_NAMED
    ]
    assert found == []
