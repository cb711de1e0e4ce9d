"""A builder keeps the plan of its last build through random edits: each byte is as if made anew."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.drills import plan_process
from tests.site_build.workbench import ROOT, SITE_URL, Workbench, compare, take
from tests.sizes import scaled

pytestmark = pytest.mark.size("test")

STEPS = scaled(test=5, ci=30, judge=200)
SEED = 56
DAWN = datetime(2026, 5, 1, tzinfo=UTC)
RETAINED = ("site/theme/", "site/pictures/")
"""Folders whose files stay for pages that are open in a browser, until they change once more."""
WORDS = [
    f"{first}{second}"
    for first in ("stone", "river", "glass", "iron")
    for second in ("mill", "gate", "work", "field", "house", "wright")
]


class Journal:
    """A copy of the project with a content folder, and a process that builds it with a memory."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.luck = random.Random(seed)  # noqa: S311  no secret
        self.project, self.now = folder / "project", DAWN
        self.bench = Workbench(folder / "content", folder / "build")
        self.ways = Counter[str]()
        self.last = deque[str](maxlen=6)
        """The last edits, for the message of a failure."""
        for part in ("site_build", "theme", "edge_api/schema"):
            shutil.copytree(
                ROOT / part, self.project / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        for part in ("edge_api/__init__.py", "pelicanconf.py"):
            shutil.copy(ROOT / part, self.project / part)
        for number in range(16):
            self.write_post(f"p-{number}")
        self.bench.write("pages/about.md", "---\ntitle: About\n---\n\nAbout us.\n")
        self._seen = take(self.bench.content)
        self.process = subprocess.Popen(
            [sys.executable, str(Path(plan_process.__file__))],
            cwd=self.project,
            env={**os.environ, "PYTHONPATH": str(self.project)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def build(
        self,
        output: Path | None = None,
        *,
        remembers: bool = True,
        ahead: timedelta = timedelta(0),
        strict: bool = False,
    ) -> list[Any]:
        """Return the answer of `plan_process`."""
        changed = None
        if remembers:
            before, self._seen = self._seen, take(self.bench.content)
            changed = [str(self.bench.content / path) for path in compare(before, self._seen)]
        asked = {
            "content": str(self.bench.content),
            "output": str(output or self.bench.output),
            "now": (self.now + ahead).isoformat(),
            "strict": strict,
            "changed": changed,
            "remembers": remembers,
            "ahead": bool(ahead),
        }
        assert self.process.stdin
        assert self.process.stdout
        for _ in range(100):  # processes of a killed build hold its lock a little longer
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            answer: list[Any] = json.loads(self.process.stdout.readline())
            if "another build is at work" not in answer[1]:
                break
            time.sleep(0.1)
        return answer

    def compare(self, folder: Path, findings: list[Any]) -> list[str]:
        """Return where the served build differs from one that is made from nothing."""
        way, _, found, _ = self.build(folder, remembers=False)
        assert (way, found) == ("whole", findings)
        served, fresh = take(self.bench.output / "current"), take(folder / "current")
        shutil.rmtree(folder)
        return [
            path
            for path in compare(served, fresh)
            if path != "manifest.sqlite" and (path in fresh or not path.startswith(RETAINED))
        ]

    def write_post(self, name: str) -> None:
        """Write a post with a random head and text."""
        luck = self.luck
        head = {
            "title": f"Title {luck.choice(WORDS)}",
            "tags": f"[{', '.join(luck.sample(WORDS[:4], luck.randrange(3)))}]",
            "status": luck.choice(["published", "published", "published", "hidden", "draft"]),
            **({"summary": f"On {luck.choice(WORDS)}."} if luck.random() < 0.7 else {}),
            **({"series": "Parts"} if luck.random() < 0.2 else {}),
            **({"image": "/images/a.png"} if luck.random() < 0.2 else {}),
        }
        # Most dates are past; some come while the drill goes on.
        day = DAWN + timedelta(days=luck.randrange(-60, 6), hours=luck.randrange(24))
        self.bench.post(name, day.isoformat(), text=self.say(), **head)

    def say(self) -> str:
        """Return a random paragraph, with links, headings and pictures at times."""
        luck = self.luck
        more = [
            f"See [it](p-{luck.randrange(20)}.md).",
            f"![A picture](/images/{luck.choice('ab')}.png)",
            f"## {luck.choice(WORDS)} {luck.randrange(99)}",
            " ".join(luck.choices(WORDS, k=300)),
            "A note.[^1]\n\n[^1]: Below.",
            "[A file](/images/a.txt)",
        ]
        said = f"On {', '.join(luck.choices(WORDS, k=6))}, {luck.randrange(999)}."
        return "\n\n".join([said, *(luck.sample(more, 1) if luck.random() < 0.4 else [])])

    def edit(self) -> None:
        """Change one thing; most often a text."""
        luck, content = self.luck, self.bench.content
        posts = sorted((content / "posts").glob("p-*.md"))
        chosen = luck.choice(posts) if posts else content / "pages" / "about.md"
        replaced = partial(replace_in, chosen)
        kinds: dict[str, tuple[int, Any]] = {
            "text": (12, lambda: append(chosen, self.say())),
            "page": (1, lambda: append(content / "pages" / "about.md", self.say())),
            "add": (2, lambda: self.write_post(f"p-{luck.randrange(20)}")),
            "remove": (1, lambda: chosen.unlink() if len(posts) > 3 else None),
            "rename": (1, lambda: chosen.replace(chosen.with_name(f"p-{luck.randrange(20)}.md"))),
            "slug": (1, lambda: replaced("slug: ", f"slug: x{luck.randrange(9)}-")),
            "tags": (1, lambda: replaced("tags: [", f"tags: [{luck.choice(WORDS)}, ")),
            "title": (1, lambda: replaced("title: ", f"title: {luck.choice(WORDS)} ")),
            "broken": (1, lambda: replaced("date: 2026", "date: never")),
            "picture": (1, lambda: self.draw(luck.choice("ab"))),
            "file": (1, lambda: self.bench.write("images/a.txt", self.say())),
            "template": (
                1,
                lambda: append(self.project / "theme/templates/article.html", "{# - #}"),
            ),
            "shown": (1, lambda: append(self.project / "theme/templates/shell.html", "<i></i>")),
            "sheet": (1, lambda: append(self.project / "theme/static/style.css", "i { top: 0 }")),
            "setting": (
                1,
                lambda: append(self.project / "pelicanconf.py", f"SITESUBTITLE = {self.say()!r}"),
            ),
        }
        name = luck.choices([*kinds], [weight for weight, _ in kinds.values()])[0]
        self.ways[name] += 1
        self.last.append(f"{name} {chosen.name}")
        kinds[name][1]()

    @property
    def is_broken(self) -> bool:
        """Whether a post, which may be a draft, has a broken date."""
        posts = (self.bench.content / "posts").glob("*.md")
        return any("date: never" in each.read_text("utf-8") for each in posts)

    def mend(self) -> None:
        """Make broken dates whole, and remove posts whose slug another one has."""
        slugs = set[str]()
        for path in sorted((self.bench.content / "posts").glob("*.md")):
            replace_in(path, "date: never", "date: 2026")
            text = path.read_text("utf-8")
            slug = text.partition("slug: ")[2].partition("\n")[0]
            if slug in slugs:
                path.unlink()
            slugs.add(slug)

    def draw(self, name: str) -> None:
        """Write a picture, or take it away."""
        path = self.bench.content / "images" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        if path.exists() and self.luck.random() < 0.3:
            path.unlink()
        else:
            colour = tuple(self.luck.randrange(256) for _ in range(3))
            Image.new("RGB", (self.luck.randrange(300, 900), 300), colour).save(path)

    def disturb(self) -> None:
        """Let another process build, be killed in a build, or put the build before back."""
        output = self.bench.output
        words = ("--content", self.bench.content, "--output", output, "--site-url", SITE_URL)
        match self.luck.randrange(4):
            case 0:
                self.build(remembers=False)
                self.ways["other build"] += 1
            case 1:
                other = subprocess.Popen(
                    [sys.executable, "-m", "site_build", "build", *map(str, words)],
                    cwd=self.project,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                time.sleep(self.luck.uniform(0, 2))
                other.kill()
                other.wait()
                self.ways["killed build"] += 1
            case 2 if (output / "previous").is_symlink():
                name = (output / "previous").readlink()
                (output / "current").unlink()
                (output / "current").symlink_to(name)
                self.ways["rollback"] += 1
            case _:
                self.build(ahead=timedelta(days=1))
                self.ways["build ahead"] += 1


def append(path: Path, text: str) -> None:
    """Add a paragraph to a file, or make the file."""
    before = path.read_text("utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{text}\n", "utf-8")


def replace_in(path: Path, old: str, new: str) -> None:
    """Replace the first `old` in a file."""
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")


@pytest.mark.size("test", grows=True)
def test_a_kept_plan_gives_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Edits, failures, other builders and the clock: the served build is as one from nothing."""
    journal = Journal(tmp_path, SEED)
    try:
        journal.build()
        for step in range(STEPS):
            for _ in range(journal.luck.choice([1, 1, 1, 2, 4])):
                journal.edit()
            if journal.luck.random() < 0.1:
                journal.disturb()
            if journal.luck.random() < 0.2:
                journal.now += timedelta(hours=journal.luck.randrange(30))
            if journal.luck.random() < 0.1:
                journal.ways[f"strict, {journal.build(strict=True)[0]}"] += 1
            way, name, findings, held = journal.build()
            journal.ways[way] += 1
            assert way != "refused", name
            # The version before is shown, or its files, which no build from nothing knows.
            if held or journal.is_broken:
                journal.ways["held"] += 1
                journal.mend()
                way, name, findings, held = journal.build()
                assert (way, held) == ("whole", 0)
            fresh = tmp_path / f"fresh-{step}"
            assert journal.compare(fresh, findings) == [], (step, way, journal.last)
    finally:
        journal.process.kill()
        journal.process.communicate()
    with capsys.disabled():
        print(f"\n{STEPS} steps: {dict(journal.ways)}")  # noqa: T201  for a person

    assert journal.ways["revised"] >= STEPS // 5
