"""The writing drill: clients, people and git change posts at random, while processes are killed.

Every text only grows: who changes one keeps the lines that were read, and adds one. So each line
whose writer was told that it is stored has to be in its post for ever.

`python -m tests.drills.writing git 200 51`, or `plain`, runs it and prints what it found.
"""

import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.drills.writing_site import Answer, Site, exchange, git
from tests.patience import patience

_LINE = re.compile(r"^([shc]\d+) .*$", re.MULTILINE)
_SLUGS = 4
_FOR_EACH = 10
"""Interleavings after which other posts are written, so that none grows without end."""
_LONGEST_DELAY = 0.25
"""Seconds from a request to the step beside it, at most: a commit takes a tenth of one."""
OURS = "Fore-edge"
"""The committer of what the product commits."""


def list_lines(text: str) -> dict[str, str]:
    """Return the drill's lines in a text, by their names."""
    return {found[1]: found[0] for found in _LINE.finditer(text)}


@dataclass
class Report:
    """What a drill did and found."""

    seed: int
    steps: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the report for a person."""
        steps = ", ".join(f"{name} {number}" for name, number in sorted(self.steps.items()))
        faults = "".join(f"\n  {each}" for each in self.faults)
        return (
            f"seed {self.seed}: {self.acknowledged} changes acknowledged, "
            f"{len(self.faults)} faults; {steps}{faults}"
        )


class Ledger:
    """What writers were told, and what the folders have to hold therefore."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        """Each line that anybody has written, by its name."""
        self.kept: dict[str, set[str]] = defaultdict(set)
        """The names of lines that each post has to hold."""

    def list_damaged(self, path: Path, text: str) -> list[str]:
        """Return the lines of a file that nobody has written."""
        return [
            f"{path.name} has the damaged line {line!r}"
            for name, line in list_lines(text).items()
            if self.written.get(name) != line
        ]

    def list_lost(self, found: Mapping[str, set[str]]) -> list[str]:
        """Return what posts have lost; what is `found` in one has to stay from now on."""
        faults = []
        for slug in found.keys() | self.kept.keys():
            lost = self.kept[slug] - found.get(slug, set())
            faults += [f"{slug} has lost {name}" for name in sorted(lost)]
            self.kept[slug] -= lost  # they are reported once
            self.kept[slug] |= found.get(slug, set())
        return faults


class Drill:
    """Random steps on a journal."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.report, self.ledger = site, Report(seed), Ledger()
        self._luck = random.Random(seed)  # noqa: S311  to be had again
        self._count = 0
        self._log: list[str] = []
        """What was done in this interleaving, in the order of the answers."""
        self._slugs: list[str] = []
        self._read: dict[tuple[str, str], tuple[str, str]] = {}
        """The version and the text that each client knows of each post."""
        self._turns = {who: threading.Lock() for who in ("agent", "editor", "owner")}
        """Held while somebody waits for an answer: nobody overlooks what it says."""
        self._told: set[tuple[str, str]] = set()
        """Clients that have to merge a draft with the file of a post."""
        self._staged: Mapping[str, set[str]] = {}
        """The lines of each post that the index had after the last interleaving."""
        self._checked = ""
        """The commit up to which the history was checked."""

    def run(self, interleavings: int) -> Report:
        """Run so many interleavings, and compare after each one."""
        for number in range(interleavings):
            if number % _FOR_EACH == 0:
                self._slugs = [f"n{number}-{letter}" for letter in "abcd"[:_SLUGS]]
            plan = [self._draw() for _ in range(self._luck.randint(3, 5))]
            for request, beside, delay in plan:
                self._perform(request, beside, delay)
            self._settle()
            faults, log = self._compare(), "; ".join(self._log)
            self.report.faults += [f"{number}: {each} [{log}]" for each in faults]
            self._log.clear()
        if (
            self.site.has_git
            and (said := git(self.site.folder, "fsck", "--no-dangling")).returncode
        ):
            self.report.faults.append(f"git fsck: {said.stderr}")
        return self.report

    def _draw(self) -> tuple[tuple[str, str, str], tuple[str, str, str], float]:
        """Return a request, a step beside it, and the seconds between the two."""
        by_hand = ("hand", "hand", "-")
        by_git = (
            ("stage", "commit", "commit", "commit", "pull", "pull") if self.site.has_git else ()
        )
        requests = ("save", "save", "save", "publish", "publish", "withdraw", "merge")
        kills = ("edge", "writer", "watcher") if self._luck.random() < 0.05 else ()
        beside = self._luck.choice(kills or (*by_hand, *by_git, "save", "publish", "-"))
        given = [
            (
                each,
                self._luck.choice(self._slugs),
                self._luck.choice(("agent", "editor", "owner", "owner")),
            )
            for each in (self._luck.choice(requests), beside)
        ]
        return given[0], given[1], self._luck.uniform(0, _LONGEST_DELAY) ** 2 * 4

    def _perform(
        self, request: tuple[str, str, str], beside: tuple[str, str, str], delay: float
    ) -> None:
        thread = threading.Thread(target=self._step, args=request)
        thread.start()
        if beside[0] != "-":
            time.sleep(delay)
            self._step(*beside)
        thread.join()

    def _step(self, name: str, slug: str, who: str) -> None:
        done = True
        match name:
            case "save" | "merge":
                with self._turns[who]:
                    done = self._save(slug, who, merges=name == "merge")
            case "publish" | "withdraw":
                who = who if who != "agent" else "owner"
                with self._turns[who]:
                    done = self._change(name, slug, who)
            case "hand":
                self._edit_by_hand(slug)
            case "stage" | "commit":
                self._commit(commits=name == "commit")
            case "pull":
                done = self._pull(slug)
            case "edge" | "writer" | "watcher":
                self.site.kill(name)
        self._log.append(f"{who} {name} {slug} {'done' if done else 'refused'}")
        self.report.steps[name if done else f"{name} refused"] += 1

    def _write_line(self, kind: str) -> str:
        """Return a new line; its end shows whether all of it is there."""
        self._count += 1
        name = f"{kind}{self._count}"
        self.ledger.written[name] = f"{name} {'word ' * (self._count * 7 % 40)}end{self._count}"
        return self.ledger.written[name]

    def _ask(
        self, who: str, operation: str, slug: str, version: str = "", text: str = ""
    ) -> Answer:
        if who == "owner":
            given = {"markdown": text} if text else {}
            return self.site.ask_as_owner(operation, version, slug=slug, **given)
        match operation:
            case "get":
                return self.site.ask_edge(who, "GET", f"/{slug}", "")
            case "save":
                return self.site.ask_edge(who, "POST", "", version, markdown=text, slug=slug)
            case _:
                return self.site.ask_edge(who, "POST", f"/{slug}/{operation}", version)

    def _remember(self, who: str, slug: str, answer: Answer) -> None:
        """Note what an answer says that is stored."""
        source = answer[1]["source"]
        self._read[who, slug] = source["version"], source["markdown"]

    def _get(self, slug: str, who: str) -> None:
        answer = self._ask(who, "get", slug)
        if answer[0] == 200:
            self._remember(who, slug, answer)

    def _save(self, slug: str, who: str, *, merges: bool) -> bool:
        """Add a line to the text that a client knows, or to a draft and the file beside it."""
        merges |= (who, slug) in self._told
        if merges or (who, slug) not in self._read or self._luck.random() < 0.6:
            self._get(slug, who)
        version, text = self._read.get(
            (who, slug), ("", f"# Post {slug}\n\nOne.\n\nTwo.\n\nEnd.\n")
        )
        if merges:
            file = self._file(slug)
            beside = list_lines(file.read_text()) if file.exists() else {}
            for name in beside.keys() - list_lines(text).keys():
                text += f"\n{beside[name]}\n"
        line = self._write_line("s")
        answer = self._ask(who, "save", slug, version, f"{text}\n{line}\n")
        if answer[0] == 200:
            self._remember(who, slug, answer)
            self._told -= {(who, slug)}
            self.ledger.kept[slug] |= {line.partition(" ")[0]}
            self.report.acknowledged += 1
        return answer[0] == 200

    def _change(self, operation: str, slug: str, who: str) -> bool:
        """Publish or withdraw the version that a client knows."""
        if self._luck.random() < 0.7:
            self._get(slug, who)
        answer = self._ask(who, operation, slug, self._read.get((who, slug), ("",))[0])
        if answer[0] == 200:
            self._remember(who, slug, answer)
            self.report.acknowledged += 1
        elif "read both" in str(answer[1]):
            self._told |= {(who, slug)}
        return answer[0] == 200

    def _file(self, slug: str) -> Path:
        return self.site.content / "posts" / f"{slug}.md"

    def _edit_by_hand(self, slug: str) -> None:
        """Add a line to a file, as an editor does that looks at what it replaces."""
        file, line = self._file(slug), self._write_line("h")
        if not file.exists():
            return
        raw, mine = file.read_bytes(), b""
        while True:
            new = raw + f"\n{line}\n".encode()
            found = exchange(file, new)
            if found in {raw, mine}:
                break
            raw, mine = found, new
        self.ledger.kept[slug] |= {line.partition(" ")[0]}

    def _commit(self, *, commits: bool) -> None:
        """Stage one post or all, and commit it or not."""
        paths = ["content"] if self._luck.random() < 0.5 else [f"content/posts/{self._slugs[0]}.md"]
        self._git("add", "--", *paths)
        if commits:
            self._git("commit", "--quiet", "--message=By hand")

    def _git(self, *words: str) -> bool:
        """Run git; return whether it succeeded. A person tries again while git is locked."""
        deadline = time.monotonic() + patience()
        while (said := git(self.site.folder, *words)).returncode:
            if ".lock'" not in said.stderr:
                return False
            if time.monotonic() > deadline:
                self.report.faults.append(f"git stays locked: {said.stderr}")
                return False
            time.sleep(0.05)
        return True

    def _pull(self, slug: str) -> bool:
        """Push a line from the second clone, and pull it here."""
        clone, file = self.site.clone, self.site.clone / "content/posts" / f"{slug}.md"
        self._git("push", "--quiet", "origin", "HEAD:main")
        git(clone, "pull", "--quiet", "--no-rebase")
        if file.exists():
            line = self._write_line("c")
            file.write_text(file.read_text().replace("\nOne.\n", f"\n{line}\n\nOne.\n", 1))
            git(clone, "commit", "--quiet", "--all", "--message=There")
            git(clone, "push", "--quiet", "origin", "HEAD:main")
        return self._git("pull", "--quiet", "--no-rebase", "--no-edit")

    def _settle(self) -> None:
        """End a merge, and wait until what was killed is finished."""
        folder = self.site.folder
        if self.site.has_git and (folder / ".git/MERGE_HEAD").exists():
            git(folder, "merge", "--abort")
        deadline = time.monotonic() + patience()
        while True:
            self.site.await_watcher()
            answer = self.site.ask_as_owner("list")
            if answer[0] == 200:
                return
            if time.monotonic() > deadline:
                self.report.faults.append(f"no answer any more: {answer[1]}")
                return
            time.sleep(0.1)

    def _compare(self) -> list[str]:
        """Return what is wrong in the folders now."""
        site = self.site
        shown = [*(site.content / "posts").rglob("*"), *(site.var / "drafts").rglob("*")]
        faults = [f"{each} is left" for each in shown if each.name.startswith(".")]
        found = defaultdict[str, set[str]](set)
        for file in [*shown, *(site.var / "versions").rglob("*")]:
            if file.suffix == ".md":
                text = file.read_text()
                faults += self.ledger.list_damaged(file, text)
                if file in shown:
                    found[file.stem] |= list_lines(text).keys()
        faults += self.ledger.list_lost(found)
        return faults + (self._check_git(found) if site.has_git else [])

    def _check_git(self, found: Mapping[str, set[str]]) -> list[str]:
        """Return what is wrong in the repository now, in new commits and in the index."""
        faults, folder = [], self.site.folder
        committed, staged = self._grep("HEAD"), self._grep("--cached")
        for slug, names in committed.items():
            faults += [f"{slug}: {each} is in git alone" for each in names - found[slug]]
            faults += [f"{slug}: the index takes {each} away" for each in names - staged[slug]]
        for slug, names in self._staged.items():
            faults += [f"{slug}: {each} is staged no more" for each in names - staged[slug]]
        self._staged = staged
        head = git(folder, "rev-parse", "HEAD").stdout.strip()
        reach = f"{self._checked}..{head}" if self._checked else head
        said = git(folder, "log", "--no-merges", f"--committer={OURS}", "--format=%H", reach)
        for commit in said.stdout.split():
            patch = git(folder, "show", "--format=", "--no-renames", commit).stdout
            paths = re.findall(r"(?m)^diff --git a/content/posts/(\S+) ", patch)
            added, removed = (
                {*re.findall(rf"(?m)^{sign}([shc]\d+) ", patch)} for sign in (r"\+", "-")
            )
            foreign = {each for each in added - removed if each[0] != "s"}
            lost = removed - added
            if len(paths) != 1 or foreign or lost:
                faults.append(f"{commit}: paths {paths}, foreign {foreign}, removed {lost}")
        self._checked = head
        return faults

    def _grep(self, where: str) -> defaultdict[str, set[str]]:
        """Return the names of lines by post, in the last commit or in the index."""
        options = ["--cached"] if where == "--cached" else []
        tree = [] if options else [where]
        said = git(
            self.site.folder, "grep", "-oE", *options, "^[shc][0-9]+ ", *tree, "--", "content/posts"
        )
        found = defaultdict[str, set[str]](set)
        for slug, name in re.findall(r"(?m)([\w-]+)\.md:(\w+) $", said.stdout):
            found[slug].add(name)
        return found


def main() -> int:
    """Run the drill and print what it found. Returns 1 if there are faults."""
    kind, interleavings, seed = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        site = Site(Path(folder), stack, has_git=kind == "git")
        report = Drill(site, int(seed)).run(int(interleavings))
    print(report)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
