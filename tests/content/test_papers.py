"""The papers hold together: the journal's own content is clean, and every link leads somewhere."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from site_build.cli.check import find_dialect
from site_build.content.library import ContentLibrary
from site_build.progress import Request
from tests.content.fences import find_strays, fits, read_fences
from tests.content.workshop import ROOT, TAUGHT
from tests.own_journal import IS_OWN, OWN_POSTS

POSTS = sorted(ROOT.glob("content/posts/*.md"))
PAPERS = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])

LINK = re.compile(r"\]\((?!https?://)(?P<path>[^)#\s]*)#?(?P<anchor>[^)\s]*)\)")
CODE = re.compile(r"^```.*?^```$|`[^`]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name_of(path: Path) -> str:
    """Return a paper's name, as tests are called by it."""
    return str(path.relative_to(ROOT))


def anchors_of(text: str) -> set[str]:
    """Return the anchors that a reader of the repository has for the headings of `text`."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def leads_somewhere(path: Path, link: re.Match[str]) -> bool:
    """Return whether a link at `path` names a file and, if it does, a heading of it."""
    target = path.parent / link["path"] if link["path"] else path
    if not target.exists():
        return False
    return not link["anchor"] or link["anchor"] in anchors_of(target.read_text(encoding="utf-8"))


@pytest.mark.own_posts
def test_the_journal_is_clean() -> None:
    """No post and no page of the journal has an error or a warning."""
    folder, now = ROOT / "content", datetime.now(UTC)
    dialect = find_dialect(folder)
    library = ContentLibrary(Request(folder, folder, folder, folder, None, now, 1), "", dialect)

    assert [str(finding) for finding in library.check(now)] == []
    assert {path.stem for path in POSTS} >= {*OWN_POSTS}


@pytest.mark.parametrize("path", PAPERS, ids=name_of)
def test_every_link_leads_somewhere(path: Path) -> None:
    """A link between the papers names a file that is there, and a heading that is in it."""
    found = LINK.finditer(CODE.sub("", path.read_text(encoding="utf-8")))
    links = [link for link in found if IS_OWN or "content/" not in link["path"]]

    assert [link[0] for link in links if not leads_somewhere(path, link)] == []


@pytest.mark.parametrize("path", TAUGHT, ids=name_of)
def test_every_block_is_run_or_said_to_be_for_show(path: Path) -> None:
    """No block of code escapes the tests by a language that nobody knows."""
    assert find_strays(path.read_text(encoding="utf-8")) == []


PAPER = """\
Text.

```bash
# greet.sh
echo hello
```

```output
hel…
```

```console
$ make coffee
```

```output
coffee
```

```pyhton
print("a slip of the pen")
```
"""


def test_pages_are_looked_at_in_the_products_own_preview() -> None:
    """No paper teaches Python's file server, which has neither the service nor drafts."""
    texts = {name_of(path): path.read_text(encoding="utf-8") for path in TAUGHT}

    assert [name for name, text in texts.items() if "-m http.server" in text] == []
    assert any("site_build serve" in text for text in texts.values())


def test_a_title_names_the_file_of_a_block() -> None:
    """A block below a file name is in the language that comes first."""
    text = '```python title="app.py"\nprint(1)\n```\n\n```output\n1\n```\n'

    (block,) = read_fences(text)

    assert (block.language, block.file, block.output) == ("python", "app.py", "1\n")
    assert find_strays(text) == []


def test_blocks_are_read_with_their_outputs() -> None:
    """A block knows its line, its file and its output; what follows no code is a stray."""
    first, second, third = read_fences(PAPER)

    assert (first.line, first.language, first.file, first.output) == (
        3,
        "bash",
        "greet.sh",
        "hel…\n",
    )
    assert (second.language, third.language) == ("console", "pyhton")
    assert find_strays(PAPER) == [16, 20]


@pytest.mark.parametrize(
    ("promised", "printed", "fit"),
    [
        ("a\nb", "a\nb\n", True),
        ("a\nb", "a\n", False),
        ("a\nb", "a\nb\nc\n", False),
        ("a …", "a thing\n", True),
        ("a …", "another\n", False),
        ("a…z", "a\nz\n", False),
        ("a\n…", "a\nb\nc\n", True),
        ("…\nc", "a\nb\nc\n", True),
        ("…\nc", "a\nb\nd\n", False),
        ("[1.5]", "[1.5]\n", True),
        ("[1.5]", "[1x5]\n", False),
    ],
)
def test_outputs_are_compared_by_line(promised: str, printed: str, *, fit: bool) -> None:
    """An ellipsis stands for text within a line, or alone for whole lines; all else is literal."""
    assert fits(promised, printed) == fit
