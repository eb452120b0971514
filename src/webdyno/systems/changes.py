"""What changed between two revisions, and whether any request can notice it."""

import re
from collections.abc import Sequence
from pathlib import Path

from webdyno.core.format import listed_to
from webdyno.systems.kinds import NamedSystem, is_revision
from webdyno.systems.repository import Repository
from webdyno.systems.target import PROJECT_FILE

MOST_NAMED = 3
CANNOT_MATTER = {
    "documentation": re.compile(
        r"(?:.*/)?(?:.*\.(?:md|rst|adoc)"
        r"|(?:LICEN[SC]E(?:-(?:MIT|APACHE|BSD|ISC|[AL]?GPL|MPL))?|COPYING(?:\.LESSER)?|AUTHORS"
        r"|CHANGELOG|CHANGES|CONTRIBUTING)(?:\.txt)?"
        r"|CODEOWNERS|\.gitignore|\.mailmap|\.editorconfig)"
    ),
    "tests": re.compile(
        r"tests?/(?:.*/)?(?:test_[^/]+|[^/]+(?:_test|Test)|conftest)\.(?:py|rb|php)"
        r"|(?:.*/)?[^/]+(?:_test\.(?:go|exs)|\.(?:test|spec)\.[cm]?[jt]sx?|_spec\.rb)"
    ),
    "CI's files": re.compile(
        r"\.(?:github|gitlab|circleci)/.*\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml"
        r"|azure-pipelines\.yml|Jenkinsfile|\.pre-commit-config\.yaml"
    ),
    PROJECT_FILE: re.compile(rf"(?:.*/)?{re.escape(PROJECT_FILE)}"),
}
"""What no request can notice, by name. Not whole folders: what lies in `docs` may well be served,
and a program may load what lies in `spec`. The working tree's `webdyno.toml` holds for all
revisions."""


def nothing_to_measure(changed: Sequence[str]) -> str | None:
    """Return why two revisions needn't be measured; None if they must be."""
    if not changed:
        return "nothing changed: both are the same"
    matching = [
        next((kind for kind, names in CANNOT_MATTER.items() if names.fullmatch(path)), None)
        for path in changed
    ]
    if None in matching:
        return None
    kinds = [kind for kind in CANNOT_MATTER if kind in matching]
    said = " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
    named = "" if changed == kinds else f" ({listed_to(MOST_NAMED, changed)})"
    return f"only {said} changed{named}: nothing to measure"


def nothing_between(systems: Sequence[str], folder: Path) -> str | None:
    """Return why two systems needn't be compared; None where they must be.

    Revisions alone can be so. Who names one twice compares it with itself on purpose.
    """
    named = [NamedSystem.of(text).system for text in systems]
    if len(named) != 2 or named[0] == named[1] or not all(map(is_revision, named)):
        return None
    repository = Repository.around(folder, systems[0])
    new, old = (repository.revision(name.removeprefix("rev:"), name) for name in named)
    return nothing_to_measure(repository.changed_files(old, new))
