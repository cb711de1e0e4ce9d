"""Files with one fault each, as writers make them: each is named at its line, in plain words."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.site_build.workbench import check_content

NOON = datetime(2026, 6, 1, tzinfo=UTC)
GOOD = "title: Good\nslug: good\ndate: 2026-03-01"
OWN = "title: {name}\nslug: {name}\ndate: 2026-03-01"
BODY = "Words."

FAULTS: dict[str, tuple[str, str, int, str]] = {
    # A head, or none where the fault is in the body; the body; the line of the file or of the body.
    "no-title": ("slug: no-title\ndate: 2026-03-01", BODY, 1, "`title` is missing; add a line"),
    "bad-date": ("title: A\nslug: bad-date\ndate: 2026-02-30", BODY, 4, "is not a date"),
    "date-order": ("title: A\nslug: date-order\ndate: 1.3.2026", BODY, 4, "is read as 2026-01-03"),
    "colon": ('title: "A": B\nslug: colon\ndate: 2026-03-01', BODY, 2, "a second colon stands"),
    "quote": ('title: "A\nslug: quote\ndate: 2026-03-01', BODY, 2, "a quote is never closed"),
    "bracket": ("title: A\nslug: bracket\ndate: 2026-03-01\ntags: [a, b", BODY, 5, "never closed"),
    "tab": ("title: A\nslug: tab\ndate: 2026-03-01\nseries:\n\t- a", BODY, 6, "a tab stands where"),
    "categories": (
        "title: A\nslug: categories\ndate: 2026-03-01\ncategories: [a]",
        BODY,
        5,
        "did you mean `tags`?",
    ),
    "draft": ("title: A\nslug: draft\ndate: 2026-03-01\ndraft: true", BODY, 5, "`status: draft`"),
    "tags-map": (
        "title: A\nslug: tags-map\ndate: 2026-03-01\ntags: {a: b}",
        BODY,
        5,
        "is a mapping, not a list; write `tags: [one, two]`",
    ),
    "blank": ("title: A\nslug: two words\ndate: 2026-03-01", BODY, 3, "`slug: two-words`"),
    "fence": ("", "Words.\n\n```py\nx = 1\n\nMore.", 3, "this code block is never closed; add ```"),
    "note": ("", "Words[^1].", 1, "`[^1]` stands for no footnote"),
    "reference": ("", "[Words][nowhere].", 1, "no line says where `[nowhere]` leads"),
    "scheme": ("", "[Words](htp://a.example/).", 1, "did you mean `http:`?"),
    "local": ("", "[Words](http://localhost:8000/).", 1, "the reader's own machine"),
    "link": ("", "Words.\n\n[More](/journal/goood/).", 3, "did you mean /journal/good/?"),
    "anchor": ("", "## Here\n\n[Words](#hre).", 3, "did you mean #here?"),
    "file": ("", "[Words](gud.md).", 1, "broken link"),
    "picture": ("", "![A plan](/images/plam.svg)", 1, "did you mean /images/plan.svg?"),
    "alt": ("", "Words.\n\n![](/images/plan.svg)", 3, "no alt text"),
    "jump": ("", "#### Deep\n\nWords.", 1, "write `##`"),
    "element": ("", "Words.\n\n<div>\n\nMore.", 3, "`<div>` is not closed"),
    "comment": ("", "Words.\n\n<!-- More.", 3, "the comment `<!--` is never closed"),
    "formula": ("", "Words.\n\n$$\n\\frac{a\n$$", 4, "the formula cannot be read"),
    "struck": ("", "Words ~gone~.", 1, "write two tildes on each side"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_at_its_line(tmp_path: Path, name: str) -> None:
    """The finding is there, once, and says what to write; the good file beside has no such one."""
    (tmp_path / "posts").mkdir()
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "plan.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (tmp_path / "posts" / "good.md").write_text(f"---\n{GOOD}\n---\n\n{BODY}\n")
    head, body, line, words = FAULTS[name]
    text = f"---\n{head or OWN.format(name=name)}\n---\n\n"
    (tmp_path / "posts" / f"{name}.md").write_text(f"{text}{body}\n")

    found = [each for each in check_content(tmp_path, NOON)[1] if words in each.message]

    expected = line if head else text.count("\n") + line
    assert [(each.path, each.line) for each in found] == [(f"posts/{name}.md", expected)]
