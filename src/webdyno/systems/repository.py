"""A user's Git repository: what its revisions are, and the working tree as one of them."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from webdyno.config.reading import nearest
from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import count
from webdyno.core.text import printable
from webdyno.host.children import must, run_program
from webdyno.host.this_machine import Testbed, run_build
from webdyno.host.users import ServerUser, caller, home_of, refuse_of_others
from webdyno.systems.target import PROJECT_FILE

WITHIN_S = 600.0
WORKING_TREE = "."
SHOWN_DIGITS = 10
GIT = ".git"
GIT_ALONE = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false", "-c", "safe.bareRepository=explicit"),
)
"""A program that a repository names could do anything, such as asking its user something."""
NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "webdyno"), ("EMAIL", "webdyno@localhost"), ("DATE", "@0 +0000"))
}
"""Who commits the working tree: equal trees make equal commits."""
LINK, SYMBOLIC_LINK = "160000 ", "120000 "
"""The mode of a submodule among the entries of a tree."""
WITHOUT_PROJECT_FILE = (
    *("rm", "--cached", "--quiet", "--ignore-unmatch", "--"),
    f":(top,glob)**/{PROJECT_FILE}",
)
RECORDS_OF_A_RUN = "slots.jsonl"
OF_A_REF = re.compile(r"[~^@].*")
"""What may stand behind the name of a branch or tag, as in `main~2`."""
MOST_NAMED = 3
MOST_LETTERS, DIGITS = 60, 7
"""Of the commits between two revisions: letters of what their authors called them, of hashes."""
SHA1_DIGITS = 40
BLOB = re.compile(r"([0-9a-f]+) blob \d+")


def is_blob(content: bytes, blob: str) -> bool:
    """Whether Git would give a content that id, of SHA-1 or SHA-256 (gitformat-pack(5))."""
    algorithm = "sha1" if len(blob) == SHA1_DIGITS else "sha256"
    named = b"blob %d\0%b" % (len(content), content)
    return hashlib.new(algorithm, named, usedforsecurity=False).hexdigest() == blob


def run_as(
    user: ServerUser | None,
    words: Sequence[str | Path],
    *,
    environment: dict[str, str] | None = None,
    given: str = "",
) -> CompletedProcess[str]:
    """Run a command to its end as a user, None being ourselves; its exit code is the caller's."""
    return run_program(
        words,
        within_s=WITHIN_S,
        given=given,
        user=user,
        environment=_variables(user) | (environment or {}),
        folder="/",
    )


def _variables(user: ServerUser | None) -> dict[str, str]:
    ours = dict(os.environ if user is None else {"PATH": os.environ.get("PATH", os.defpath)})
    return {**ours, "HOME": str(home_of(user)), "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"}


def refuse_in_others(folder: Path) -> None:
    """Raise UserError where the repository around a folder may be somebody else's."""
    if (top := top_around(folder)) is not None:
        refuse_of_others(top, top)
        refuse_of_others(top / GIT, top)


def top_around(folder: Path) -> Path | None:
    """Return the top of the working tree that a folder is in; bare repositories have none."""
    return next((each for each in (folder, *folder.parents) if (each / GIT).exists()), None)


@dataclass(frozen=True)
class Revision:
    """A state of all files."""

    commit: str
    tree: str
    """The hash of the files alone: commits with equal files have it in common."""
    built_from: str
    """The same of what a build reads: of the working tree without webdyno.toml, which is edited
    often and says nothing to a build."""
    has_changes: bool = False
    """Whether it is the working tree, with changes that nobody has committed."""

    @property
    def text(self) -> str:
        """For people."""
        return self.commit[:SHOWN_DIGITS] + (" with changes" if self.has_changes else "")


@dataclass(frozen=True)
class Commit:
    """A commit, and what its author called it."""

    hash: str
    subject: str

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.hash[:SHOWN_DIGITS]} ({printable(self.subject)})"

    @property
    def short_name(self) -> str:
        """For people, where several are named in one line."""
        words = " ".join(self.subject.split())
        subject = "".join(letter if letter.isprintable() else "…" for letter in words)
        cut = subject if len(subject) <= MOST_LETTERS else f"{subject[: MOST_LETTERS - 1]}…"
        return f"{self.hash[:DIGITS]} {cut}"


@dataclass(frozen=True)
class Submodule:
    """Another repository that a commit wants inside."""

    path: str
    commit: str
    is_here: bool


@dataclass(frozen=True)
class Repository:
    """A repository; everything in it is done as its user."""

    top: Path
    """The top of its working tree."""
    user: ServerUser | None

    @classmethod
    def around(cls, folder: Path, place: str) -> "Repository":
        """Find the repository that a folder is in.

        Raise UserError where it is in none, or in somebody else's, who has programs of his choice
        run by what he wrote there.
        """
        if (top := top_around(folder)) is None:
            raise UserError(f"{place}: {folder} is in no Git repository")
        refuse_in_others(folder)
        user = caller(folder) or caller(top) or caller(top / GIT)
        git = run_as(user, [*GIT_ALONE, "-C", folder, "rev-parse", "--show-toplevel"])
        if git.returncode:
            why = git.stderr.strip().removeprefix("fatal: ")
            raise UserError(f"{place}: {folder} is in no Git repository: {why}")
        return cls(Path(git.stdout.rstrip("\n")), user)

    def revision(self, name: str, place: str) -> Revision:
        """Find a branch, tag, commit, `HEAD~3` or (`.`) the working tree; else raise UserError."""
        if name == WORKING_TREE:
            return self._working_tree(place)
        wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        parsed = self._git(*wanted)
        commit = parsed.stdout.strip()
        if parsed.returncode or not commit:
            names = self._git("for-each-ref", "--format=%(refname:short)").stdout.split()
            raise UserError(f"{place}: {self.top} has no revision {name!r}; {nearest(name, names)}")
        self._refuse_ambiguous(name, place)
        tree = self._text_of("rev-parse", f"{commit}^{{tree}}")
        return Revision(commit, tree, tree)

    def _refuse_ambiguous(self, name: str, place: str) -> None:
        """Raise UserError for a name of two commits: who may push tags could name one origin/main.

        https://git-scm.com/docs/gitrevisions has the order in which Git would take them.
        """
        base = OF_A_REF.sub("", name)
        refs = [f"refs/{kind}/{base}" for kind in ("tags", "heads", "remotes")]
        listed = self._git("for-each-ref", "--format=%(refname)", *refs).stdout.split("\n")
        there = [ref for ref in refs if ref in listed]
        if there and re.fullmatch(r"[0-9a-f]{4,40}", base):
            hashes = self._git("rev-parse", f"--disambiguate={base}").stdout.split()
            there += [each for each in hashes if self._is_commit(each)]
        if len({self._text_of("rev-parse", f"{each}^{{commit}}") for each in there}) > 1:
            raise UserError(f"{place}: {name!r} names two commits: say {' or '.join(there)}")

    def _is_commit(self, name: str) -> bool:
        return not self._git("cat-file", "-e", f"{name}^{{commit}}").returncode

    def file_of(self, revision: Revision, path: Path) -> str | None:
        """Return the text of a file, by its path from the top; None where a revision lacks it.

        A link is followed in that revision; of one that leads out of it the text is empty.
        """
        head, text = self._object(revision, path, "--batch")
        if head.endswith(" missing"):
            return None
        return text.removesuffix("\n") if BLOB.fullmatch(head) else ""

    def blob_of(self, revision: Revision, path: Path) -> str | None:
        """Return the id of a file's content, as `file_of`; None also for what is no file there."""
        head, _ = self._object(revision, path, "--batch-check")
        return blob[1] if (blob := BLOB.fullmatch(head)) else None

    def _object(self, revision: Revision, path: Path, how: str) -> tuple[str, str]:
        words = ["cat-file", "--follow-symlinks", how]
        named = f"{revision.commit}:{path}\n"
        said = run_as(self.user, [*GIT_ALONE, "-C", self.top, *words], given=named).stdout
        head, _, content = said.partition("\n")
        return head, content

    def tracks(self, folder: Path) -> bool:
        """Whether a folder has files of the repository's in the working tree or its index."""
        top, place = self.top.resolve(), folder.resolve()
        if not place.is_relative_to(top):
            return False
        where = ":/" if place == top else f":(literal,top){place.relative_to(top)}"
        return bool(self._text_of("ls-files", "--", where))

    def branches(self) -> list[str]:
        return self._git("for-each-ref", "--format=%(refname:short)", "refs/heads").stdout.split()

    def commit(self, commit: str) -> Commit:
        """Read what its author called a commit."""
        return Commit(commit, self._text_of("show", "--no-patch", "--format=%s", commit))

    def since(self, before: Revision, after: Revision) -> list[Commit]:
        """List the commits that one revision has and an earlier one lacks, the newest first."""
        words = ("log", "--format=%H %s", "-z", f"{before.commit}..{after.commit}", "--")
        lines = filter(None, self._text_of(*words).split("\0"))
        return [Commit(*line.split(" ", 1)) for line in lines]

    def commits_between(self, old: Revision, new: Revision) -> str:
        """Return the commits that one revision has and an earlier one lacks, for people."""
        commits = self.since(old, new)
        named = []
        if new.has_changes:  # which are a commit of webdyno's own
            named, commits = ["changes that aren't committed"], commits[1:]
        named += [commit.short_name for commit in commits[:MOST_NAMED]]
        if len(commits) > MOST_NAMED:
            named.append(f"{len(commits) - MOST_NAMED} more")
        newest = commits[0].hash if commits else new.commit
        between = f"{old.commit[:DIGITS]}..{newest[:DIGITS]}, " if commits else ""
        return f"{between}{count(len(commits), 'commit')}: {'; '.join(named)}" if named else ""

    def halfway(self, bad: str, cleared: Sequence[str]) -> list[str]:
        """List the commits that a bad one has and cleared ones lack, the best to try next first."""
        excluded = [f"^{commit}" for commit in cleared]
        lines = self._text_of("rev-list", "--bisect-all", bad, *excluded).splitlines()
        return [line.split()[0] for line in lines]

    def excluded_from(self, name: str) -> str | None:
        """Return a warning where a revision lacks changes of the working tree, as `HEAD` does."""
        if not name.startswith("HEAD") or not self._filtered("status", "--porcelain"):
            return None
        return (
            "excludes the changes of the working tree that aren't committed; "
            f"rev:{WORKING_TREE} has them"
        )

    def changed_files(self, before: Revision, after: Revision) -> list[str]:
        """List files that are other, new or gone; both names of a moved one.

        With them come all symbolic links, as what they lead to may be other. Submodules end with a
        slash, whatever they are called.
        """
        options = ("--name-only", "--no-renames", "--ignore-submodules=none", "-z")
        words = ("diff", *options, before.commit, after.commit, "--")
        changed = set(filter(None, self._text_of(*words).split("\0")))
        if not changed:
            return []
        links, submodules = set[str](), set[str]()
        for commit in (before.commit, after.commit):
            links |= self._entries(commit, SYMBOLIC_LINK).keys()
            submodules |= self._entries(commit, LINK).keys()
        return sorted(f"{path}/" if path in submodules else path for path in changed | links)

    def _entries(self, commit: str, mode: str) -> dict[str, str]:
        """Return the hashes of a commit's entries of one mode, by path."""
        entries = self._text_of("ls-tree", "-r", "-z", commit).split("\0")
        return {
            entry.partition("\t")[2]: entry.split()[2]
            for entry in entries
            if entry.startswith(mode)
        }

    def submodules(self, commit: str) -> list[Submodule]:
        """Return the submodules of a commit, and whether there is a clone of each here."""
        return [
            Submodule(path, pinned, (self.top / path / ".git").exists())
            for path, pinned in self._entries(commit, LINK).items()
        ]

    def ignored_files(self) -> list[str]:
        """Return files and folders of the working tree that Git ignores; revisions lack them."""
        words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return sorted(filter(None, self._text_of(*words).split("\0")))

    def check_out(self, revision: Revision, folder: Path) -> None:
        """Put a revision's files into a new folder, as a worktree of this repository.

        Its submodules come from their clones here, and are excluded where there are none. Raise
        OperationError where such a clone lacks what the revision wants of it.
        """
        words = ("worktree", "add", "--force", "--detach")
        self._filtered(*words, "--quiet", str(folder), revision.commit)
        for submodule in self.submodules(revision.commit):
            if not submodule.is_here:
                continue
            clone = Repository(self.top / submodule.path, self.user)
            commit = submodule.commit
            if clone._git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
                raise OperationError(
                    f"submodule {submodule.path} has no commit {commit[:SHOWN_DIGITS]} here, which "
                    f"{revision.text} wants; get it by: git -C {clone.top} fetch"
                )
            clone.check_out(Revision(commit, commit, commit), folder / submodule.path)

    def forget_removed(self) -> None:
        """Drop what the repository knows of worktrees that are gone."""
        self._git("worktree", "prune")
        self._git("submodule", "--quiet", "foreach", "--recursive", "git worktree prune")

    def _working_tree(self, place: str) -> Revision:
        """Commit the working tree, untracked files included and ignored ones not, to no branch.

        Neither index nor branches are touched: the commit is made by way of another index.
        """
        head = self._git("rev-parse", "--verify", "--quiet", "HEAD").stdout.strip()
        if not head:
            raise UserError(f"{place}: {self.top} has no commit yet; make a first one")
        # Runs of webdyno's would make it another one each time.
        words = ("ls-files", "--others", "--exclude-standard", "-z", "--")
        records = self._text_of(*words, f":/**/{RECORDS_OF_A_RUN}").split("\0")
        runs = [Path(path).parent for path in records if "/" in path]
        excluded = [f":(exclude,top,literal){run}" for run in runs]
        index = Path(self._text_of("rev-parse", "--absolute-git-dir")) / "webdyno-index"
        with_index = {"GIT_INDEX_FILE": str(index)}
        try:
            self._text_of("read-tree", "HEAD", environment=with_index)
            self._filtered("add", "--all", "--", ":/", *excluded, environment=with_index)
            tree = self._text_of("write-tree", environment=with_index)
            self._text_of(*WITHOUT_PROJECT_FILE, environment=with_index)
            files = self._text_of("write-tree", environment=with_index)
        finally:
            run_as(self.user, ["rm", "-f", index])
        if tree == self._text_of("rev-parse", "HEAD^{tree}"):
            return Revision(head, tree, tree)
        said = ("commit-tree", tree, "-p", head, "-m", "the working tree, for webdyno")
        commit = self._text_of(*said, environment=NOBODY)
        return Revision(commit, tree, f"{files} with changes", has_changes=True)

    def _git(self, *words: str, environment: dict[str, str] | None = None) -> CompletedProcess[str]:
        return run_as(self.user, [*GIT_ALONE, "-C", self.top, *words], environment=environment)

    def _text_of(self, *words: str, environment: dict[str, str] | None = None) -> str:
        done = self._git(*words, environment=environment)
        return must(done, f"git {words[0]} in {self.top} failed")

    def _filtered(self, *words: str, environment: dict[str, str] | None = None) -> str:
        """Run what starts filters of the repository's, nothing of which may outlive us."""
        end = run_build(
            [*GIT_ALONE, "-C", str(self.top), *words],
            Testbed().with_user(self.user),
            folder=Path("/"),
            environment=_variables(self.user) | (environment or {}),
        )
        if end.code != 0:
            raise OperationError(f"git {words[0]} in {self.top} failed: {end.said.strip()}")
        return end.said


def repository_of(folder: Path) -> Repository | None:
    """Return the repository with a commit that a folder is in; None where it is in none.

    Raise UserError where it may be somebody else's.
    """
    refuse_in_others(folder.resolve())
    try:
        repository = Repository.around(folder.resolve(), str(folder))
        repository.revision("HEAD", str(folder))
    except UserError:
        return None
    return repository
