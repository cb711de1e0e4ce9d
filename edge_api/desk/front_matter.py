"""The text of a post as a form has it: some keys of its head in fields, the rest as it was."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

FIELDS: Final = ("title", "tags", "slug", "date", "description", "newsletter", "status")
"""The keys that have a field of their own, or that a screen reads."""
STARTED: Final = "# when it was started"
"""The comment after the date of a draft, which is replaced when the post is published."""
_PARTS: Final = re.compile(
    r"(?P<before>\ufeff?\s*---+[ \t]*\n)(?P<head>(?:[^\n]*\n)*?)"
    r"(?P<after>---+[ \t]*(?:(?:\n[ \t]*(?=\n))*\n|\Z))"
    # A head in Pelican's form ends before the first empty line.
    r"|(?P<bare>(?:[A-Za-z][\w-]*:[^\n]*\n(?:[ \t][^\n]*\n)*)+)(?P<end>(?:[ \t]*\n)+|\Z)"
)
_NAMES: Final = {
    "tags": "tags|categories|keywords",
    "description": "description|subtitle|abstract",
    "slug": "slug|permalink",
    "date": "date|created|publishdate",
}
"""The names that a key may have in a file."""
_PLAIN: Final = re.compile(
    r"(?!(?:true|false|yes|no|on|off|null|y|n)\Z)[^\W\d_](?:[\w '.()/?!-]*[\w'.)?!])?",
    re.IGNORECASE,
)
"""A text that YAML reads as itself without quotes."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A Markdown file: its head between what opens and what ends it, and its text."""

    before: str
    head: str
    after: str
    text: str

    @property
    def fields(self) -> Mapping[str, str]:
        """The values of the keys that have a field; a chosen date, but not that of a start."""
        return {name: _read(name, self.head) for name in FIELDS}

    @property
    def first_line(self) -> int:
        """The number of lines of the file before the text."""
        return f"{self.before}{self.head}{self.after}".count("\n")

    def join(self, changes: Iterable[tuple[str, str]]) -> str:
        """Return the file with new values of some keys; an empty value removes the key."""
        before, head, after = self.before, self.head, self.after
        if not f"{before}{head}":
            before, after = "---\n", "---\n\n"
        head += "" if head.endswith("\n") or not head else "\n"
        for name, value in changes:
            line = _write(name, " ".join(value.split()), is_yaml=bool(before))
            former = re.search(_entry(name), head)
            start, end = former.span() if former else (len(head), len(head))
            head = f"{head[:start]}{line}{head[end:]}"
        return f"{before}{head}{after}{self.text}" if head or self.before else self.text


def split(markdown: str) -> Parts:
    """Return the parts of a file; one whose head has another form is text as a whole."""
    found = _PARTS.match(markdown)
    if not found:
        return Parts("", "", "", markdown)
    head, after = (found["bare"] or found["head"], found["end"] or found["after"] or "")
    return Parts(found["before"] or "", head, after, markdown[found.end() :])


def _entry(name: str) -> str:
    """Return the pattern of the lines of a key."""
    return rf"(?im)^(?:{_NAMES.get(name, name)})[ \t]*:([^\n]*)\n((?:(?:[ \t]|-[ \t])[^\n]*\n)*)"


def _read(name: str, head: str) -> str:
    found = re.search(_entry(name), f"{head}\n")
    if not found or STARTED in found[1]:
        return ""
    first = re.sub(r"\s#.*", "", found[1]).strip()
    if name == "tags":
        listed = re.findall(r"(?m)^[ \t]*-[ \t]+(.*)", found[2])
        return ", ".join(map(_unquote, listed or re.split(r"[,;]", first.strip("[]"))))
    more = [line.strip() for line in found[2].splitlines()]
    return _unquote(" ".join(([] if first[:1] in ("|", ">") else [first]) + more).strip())


def _unquote(value: str) -> str:
    value = value.strip()
    if value[:1] == value[-1:] == "'":
        return value[1:-1].replace("''", "'")
    try:
        return str(json.loads(value)) if value[:1] == '"' else value
    except ValueError:
        return value.strip('"')


def _write(name: str, value: str, *, is_yaml: bool) -> str:
    if not value:
        return ""
    if name == "tags" and is_yaml:
        members = filter(None, map(str.strip, value.split(",")))
        return f"{name}: [{', '.join(map(_quote, members))}]\n"
    return f"{name}: {_quote(value) if is_yaml and name != 'date' else value}\n"


def _quote(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
