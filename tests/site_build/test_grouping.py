"""Findings are printed by kind: ten of each with their places, the number of the rest, a total."""

from pathlib import Path

import pytest

from edge_api.schema.environment import BUILD
from site_build.errors import Diagnostic
from tests.site_build.test_commands import GOOD, Run, content, run, start_on_terminal
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")
__all__ = ["content", "run"]

KINDS = [
    ("broken link: no page at `/a/`; did you mean /b/?", "broken link: no page at `/c d/`; fix it"),
    ("`date` is '2026-1-1'; write it as 2026-03-01", "`date` is 'May'; write it as 2026-03-01"),
    ("`titel` is not a front matter key; did you mean `title`?", "`x` is not a front matter key"),
    ("`summary` has 198 characters; shorten it", "`summary` has 1,980 characters; shorten it"),
    ("the link leads to a.md, which appears on 2026-01-01", "the link leads to b/c.md, which app"),
    ("`<div>` is not closed; write `</div>`", "`<p>` is not closed; write `</p>`"),
    ("`title` is missing; add a line", "`title` is missing; add another"),
    ("`slug` is missing; add a line", "`slug` is missing"),
    ("nothing on /journal/a/ is named `#b`; take it away", "nothing on /b/ is named `#c`; remove"),
]


def make(message: str) -> Diagnostic:
    """Return a warning."""
    return Diagnostic("a.md", 1, 1, "warning", message)


def test_a_kind_is_the_message_without_its_particulars() -> None:
    """Quotes, counts and addresses do not matter; the key that is at fault does."""
    kinds = [{make(message).kind for message in messages} for messages in KINDS[:2]]
    kinds += [{make(message[:60]).kind for message in messages} for messages in KINDS[5:]]

    assert all(len(each) == 1 for each in kinds)
    assert len(set.union(*kinds)) == len(kinds)


@pytest.mark.parametrize(("first", "second"), KINDS[2:5])
def test_a_kind_ends_with_the_fix(first: str, second: str) -> None:
    """The first clause names what is wrong."""
    assert make(first).kind[:30] == make(second).kind[:30]
    assert make(first).kind != make("the text is empty").kind


def fill(content: Path, links: int) -> None:
    """Write many broken links and one picture without text, and an error in the last file."""
    body = "![](a.md)\n" + "".join(f"\n[a](/x{n}/y/)\n" for n in range(links))
    (content / "posts" / "b.md").write_text(GOOD.format("b") + body)
    text = GOOD.format("z").replace("2026-03-01\n", "2026-03-01\naliases: [z]\n")
    (content / "posts" / "z.md").write_text(text)


@pytest.mark.parametrize("links", [10, *in_ci(11), 1_234])
def test_ten_of_a_kind_are_listed(content: Path, run: Run, links: int) -> None:
    """Errors come first although their file is the last; a full list is one option away."""
    fill(content, links)
    lines = run("check", "--content", content).out.splitlines()
    more = f"… and {links - 10:,} more like these: {BUILD} check --all"
    total = f"1 error, {links + 2:,} warnings of 4 kinds in 3 files"

    assert lines[0].startswith(f"{content}/posts/z.md:5:11  error  the alias is the address of")
    assert sum("  warning  broken link: no page at" in line for line in lines) == 10
    assert lines[-1] == total
    assert lines[-2] == (more if links > 10 else lines[-2])
    assert len(lines) == 14 + (links > 10)
    everything = run("check", "--content", content, "--all").out.splitlines()
    assert sum("no page at" in line for line in everything) == links
    assert (len(everything), everything[-1]) == (links + 4, total)


def test_a_terminal_breaks_lines_between_words(content: Path) -> None:
    """At 80 columns the place begins a line, and what follows it is indented, in whole words."""
    fill(content, 12)
    command = ("check", "--content", content)
    env = {"NO_COLOR": "1", "COLUMNS": "80"}
    lines = start_on_terminal(*command, env=env).splitlines()
    begins = [at for at, line in enumerate(lines) if line.startswith(f"{content}/posts/b.md:9:5")]

    assert len(begins) == 1
    assert all(len(line) <= max(80, len(f"{content}/posts/b.md:88:88")) for line in lines)
    assert lines[begins[0] + 1].startswith("    ")
    joined = " ".join(line.strip() for line in lines)
    said = "warning  broken link: no page at `/x0/y/`; fix the address, or remove it"
    assert said.replace("  ", " ") in joined.replace("  ", " ")
    assert lines[-1] == "1 error, 14 warnings of 4 kinds in 3 files"
