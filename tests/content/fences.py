"""The fenced blocks of a Markdown paper: which of them run, and what they promise to print.

Every block of `bash`, `python` or `js` runs, in the order of the paper. An `output` block says what
the block before it prints: `…` stands for any text within a line, and alone for any lines. A
`sample` block shows it as it once was: whatever has a digit in it may be another the next time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

RUN = frozenset({"bash", "python", "js"})
OUTPUT = "output"
SAMPLE = "sample"
SHOWN = frozenset({"console", "ini", "json", "markdown", "nginx", "shell", "text", "yaml"})
"""For what only a reader's own machine could run, and for what is no code.

`shell` is what test_deploy.py runs as root.
"""

_FENCE = re.compile(
    r"^(?P<mark>`{3,})(?P<language>[\w-]*)(?: title=\"(?P<title>[^\"\n]*)\")?(?P<more>[^\n`]*)\n"
    r"(?P<code>.*?)^(?P=mark)$",
    re.MULTILINE | re.DOTALL,
)
_FIGURE = re.compile(r"\w*\d\w*")
_NAME = re.compile(r"(?:#|//) (?P<name>[\w-]+\.(?:sh|py|mjs))\n")
_SUFFIXES = {"bash": ".sh", "python": ".py", "js": ".mjs"}


@dataclass(frozen=True)
class Fence:
    """One block of code."""

    line: int
    """From 1, where its fence opens."""
    language: str
    code: str
    output: str | None = None
    """The output that it promises; None where it promises nothing."""
    varies: bool = False
    """True if that is a sample."""
    title: str = ""
    """The file name above it on the page."""

    @property
    def file(self) -> str:
        """The name under which it is kept: its title, the comment on its first line, its place."""
        if self.title:
            return self.title
        named = _NAME.match(self.code)
        return named["name"] if named else f"line-{self.line}{_SUFFIXES[self.language]}"


def read_fences(text: str) -> Iterator[Fence]:
    """Yield every block of `text` but the outputs, each with the output that follows it."""
    blocks = [
        Fence(
            text.count("\n", 0, found.start()) + 1,
            found["language"] + found["more"],
            found["code"],
            title=found["title"] or "",
        )
        for found in _FENCE.finditer(text)
    ]
    followers = [*blocks[1:], Fence(0, "", "")][: len(blocks)]
    for block, follower in zip(blocks, followers, strict=True):
        if block.language not in {OUTPUT, SAMPLE}:
            promised = follower.code if follower.language in {OUTPUT, SAMPLE} else None
            yield replace(block, output=promised, varies=follower.language == SAMPLE)


def find_strays(text: str) -> list[int]:
    """Return the lines of outputs that belong to no code, and of blocks in no known language."""
    strays = []
    before = ""
    for found in _FENCE.finditer(text):
        language = found["language"] + found["more"]
        is_known = language in RUN | SHOWN or (language in {OUTPUT, SAMPLE} and before in RUN)
        if not is_known:
            strays.append(text.count("\n", 0, found.start()) + 1)
        before = language
    return strays


def fits(promised: str, printed: str, *, varies: bool = False) -> bool:
    """Return whether what was printed is what was promised; figures may differ if it `varies`."""
    if varies:
        promised, printed = (_FIGURE.sub("0", text) for text in (promised, printed))
    lines = (
        r"(?:[^\n]*\n)*?" if line == "…" else re.escape(line).replace("…", r"[^\n]*") + r"[ \t]*\n"
        for line in promised.rstrip().split("\n")
    )
    return re.fullmatch("".join(lines), f"{printed.rstrip()}\n") is not None
