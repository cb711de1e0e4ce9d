"""A small journal of everything that strains a page: long words, no words, many, and foreign ones.

The product's own journal is well behaved; what a theme does not expect has to be asked for.
"""

import shutil
from pathlib import Path

from tests.edge.edge_process import ROOT
from tests.own_journal import TEST_CONTENT

_EVERYTHING = ROOT / "tests" / "site_build" / "samples" / "everything.md"
CONTACT = TEST_CONTENT / "pages" / "contact.md"
PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="600" height="200" viewBox="0 0 600 200">
<path fill="#b8864b" d="M0 40h600v40H0z"/><path fill="#345" d="M0 120h600v40H0z"/>
</svg>
"""
_ORDINARY = 45
"""Posts with one tag in common, so that its list and the journal fill three leaves."""
_LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
_HEADINGS = "\n\n".join(
    f"{'#' * (2 + number % 3)} Section {number}, {'of a heading that goes on ' * (number % 3)}\n\n"
    f"Words of the section {number}. " * 4
    for number in range(12)
)
_PICTURED = """\
![Three book edges, painted.](/images/fore-edges.svg)

A line.

<figure>
<img src="/images/fore-edges.svg" alt="The same again." width="600" height="200">
<figcaption>With a caption.</figcaption>
</figure>

> A quotation.
>
> > Within a quotation.

1. one
    1. two
        1. three
"""
_ARABIC = """\
الحافة الأمامية للكتاب هي الجانب الذي تُفتح منه الصفحات. انظر `code` هنا.

## عنوان

نص.
"""
_POSTS = {
    "long-word": (
        "A title with " + _LONG,
        "tags: [strain]",
        f"{_LONG}\n\n`{_LONG}`\n\n{_HEADINGS}",
    ),
    "wide": (
        "Wide things",
        "tags: [strain, wide]",
        "| " + " | ".join(f"column-{n}" for n in range(24)) + " |\n"
        "|" + "---|" * 24 + "\n"
        "| " + " | ".join(f"cell-{n}-of-a-row" for n in range(24)) + " |\n\n"
        "```python\n" + "x = " + " + ".join(f"name_{n}" for n in range(60)) + "\n```\n",
    ),
    "arabic": (
        "حافة الكتاب",
        "lang: ar\ntags: [strain, كتب]",
        _ARABIC,
    ),
    "japanese": ("小口の絵", "lang: ja\ntags: [紙, strain]", "本の小口に描かれた絵。" * 30),
    "many-tags": (
        "Of many tags",
        "tags: [go, more, " + ", ".join(f"subject {n}" for n in range(22)) + "]",
        "Every tag has a colour of its own.",
    ),
    "nothing": ("Almost nothing", "description: No tag at all.", "One."),
    "quoted": (
        "“Quotes” & <angles> 'in' \"titles\" {{ braces }} {% too %}",
        "tags: [C++ & <C>, strain]",
        "Text.",
    ),
    "pictured": (
        "A picture first",
        "tags: [strain]",
        _PICTURED,
    ),
}
STRAINS = tuple(f"/{slug}" for slug in ("everything", *_POSTS))
"""Endings of the paths of these posts, without the last slash."""


def _head(title: str, slug: str, day: int, more: str) -> str:
    quoted = title.replace("'", "''")
    return f"---\ntitle: '{quoted}'\nslug: {slug}\ndate: 2026-04-{day:02}\n{more}\n---\n\n"


def write_sample(content: Path) -> Path:
    """Write the journal below `content`, and return that."""
    for folder in ("posts", "pages", "images"):
        (content / folder).mkdir(parents=True)
    shutil.copy(CONTACT, content / "pages")
    for name in ("fore-edges.svg", "a.svg", "b.svg"):
        (content / "images" / name).write_text(PICTURE, encoding="utf-8")
    everything = _EVERYTHING.read_text(encoding="utf-8").replace(".png", ".svg")
    (content / "posts" / "everything.md").write_text(everything, encoding="utf-8")
    for day, (slug, (title, more, text)) in enumerate(_POSTS.items(), start=1):
        source = _head(title, slug, day, more) + text + "\n"
        (content / "posts" / f"{slug}.md").write_text(source, encoding="utf-8")
    for number in range(1, _ORDINARY + 1):
        source = _head(f"Post {number}", f"post-{number}", 1 + number % 28, "tags: [common]")
        source += f"The post number {number}.\n"
        (content / "posts" / f"post-{number}.md").write_text(source, encoding="utf-8")
    return content
