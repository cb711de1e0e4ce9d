"""The front matter of other systems' texts: YAML, TOML or JSON above a body."""

import json
import re
import tomllib
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, time
from itertools import accumulate
from typing import Any

import yaml

from site_build.content.dates import read_moment

_HEAD = re.compile(
    r"""\s*(?:(?P<mark>---|\+\+\+|;;;)(?P<form>json|toml|yaml|js|)[ \t]*\n|(?=\{\s*"))"""
    r"(?P<text>.*?)(?(mark)^(?:(?P=mark)|\.\.\.)|(?<=\n\}))[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A head between fences, or JSON whose last brace begins a line."""
_LONGEST, _MOST_FIXES, _DEEPEST = 200_000, 30, 40
"""Most characters of YAML, values that are quoted to read it, and levels of nesting."""
_YAML = "tag:yaml.org,2002:"
YES, NO = ("true", "yes", "on", "y", "t", "1"), ("false", "no", "off", "n", "f", "0")
"""Words in lower case, as YAML, other forms and people write them."""


class HeadError(ValueError):
    """A head that cannot be read; the message is a sentence with the line."""

    def __init__(self, line: int, why: str) -> None:
        """Keep the line, from 1, as `line`."""
        super().__init__(f"the head cannot be read in line {line}: {why}")
        self.line = line


class _Loader(yaml.CSafeLoader):
    """Reads unquoted values as text, except `true`, `false`, `null` and empty ones."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name is PyYAML's
        first: [(_YAML + name, re.compile(pattern))]
        for name, pattern, signs in (
            ("bool", "(?i:true|false)$", "tTfF"),
            ("null", "(?:null|Null|NULL|~|)$", ["~", "n", "N", ""]),
            ("merge", "<<$", "<"),
        )
        for first in signs
    }
    yaml_constructors = {  # noqa: RUF012
        **{
            _YAML + n: yaml.CSafeLoader.yaml_constructors[_YAML + n] for n in ("map", "seq", "null")
        },
        _YAML + "bool": lambda _loader, node: str(node.value).lower() == "true",
        # Texts, and values with a tag, as Ruby and others write them.
        None: lambda _loader, node: node.value if isinstance(node, yaml.ScalarNode) else None,
    }


def split_head(text: str) -> tuple[dict[str, Any], str, int]:
    """Return a text's head, its body, and the line at which the body begins, from 1.

    Numbers and dates of YAML are text, as written; dates of TOML are text that `read_date` reads.
    A text without a head has an empty one. Raises HeadError.
    """
    found = _HEAD.match(text)
    if not found and re.match(
        r"\s*(?:---|\+\+\+)[ \t]*\n[\w-]+[ \t]*[:=]|\s*\{\s*\"[\w-]+\"\s*:", text
    ):
        raise HeadError(1, "it has no end; write its first line again below it")
    line = text.count("\n", 0, found.start("text")) + 1 if found else 1
    read = _READERS.get((found["mark"] or "{") + (found["form"] or "")) if found else None
    head = (read(found["text"], line) or {}) if found and read else None
    if not found or not isinstance(head, dict):  # no head, or a horizontal rule
        return {}, text, 1
    return (
        {str(key): value for key, value in head.items()},
        text[found.end() :],
        text.count("\n", 0, found.end()) + 1,
    )


def read_yaml(text: str, first_line: int = 1, fixed: int = 0) -> Any:
    """Return the value of a YAML text, with numbers and dates as text. Raises HeadError.

    A value that YAML misreads, such as a title with a colon, is read as if it were in quotes.
    `fixed` is the number of values that were quoted so far.
    """
    if len(text) > _LONGEST:
        raise HeadError(first_line, f"it has more than {_LONGEST} characters; shorten it")
    # Some characters end a line in YAML only, and YAML forbids others.
    text = re.sub(
        "[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        "",
        re.sub("[\x85\u2028\u2029]", " ", text.expandtabs(4)),
    )
    try:
        # Refuse a text that would fill the memory or the stack before it is composed: an alias
        # counts as three levels.
        depths = accumulate(
            isinstance(event, yaml.CollectionStartEvent)
            - isinstance(event, yaml.CollectionEndEvent)
            + isinstance(event, yaml.AliasEvent) * 3
            for event in yaml.parse(text, Loader=yaml.CSafeLoader)
        )
        if any(each > _DEEPEST for each in depths):
            raise HeadError(first_line, "it is too deep or has many aliases; write values out")
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as fault:
        # The parser misses the end of an open value further down; the context has its beginning.
        mark = (
            fault.context_mark
            if re.search("quoted|flow|simple key", fault.context or "")
            else fault.problem_mark
        )
        lines, at = text.split("\n"), mark.line if mark else 0
        entry = re.match(
            r"""(\s*(?:- )?[\w-]+:[ ]+)(["'](?![^"']*\S["']\s)|)(.*?)\2\s*$""", lines[at]
        )
        if not entry or fixed == _MOST_FIXES:
            raise HeadError(first_line + at, f"{fault.problem}; quote the value") from fault
        lines[at] = entry[1] + json.dumps(entry[3], ensure_ascii=False)
        return read_yaml("\n".join(lines), first_line, fixed + 1)


def read_toml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return the value of a TOML text, with dates as text. Raises HeadError."""
    return dict(json.loads(json.dumps(_decode(tomllib.loads, text, first_line), default=str)))


def read_json(text: str, first_line: int = 1) -> Any:
    """Return the value of a JSON text, which may lack its outer braces. Raises HeadError."""
    whole = text if text.lstrip().startswith("{") else f"{{{text.rstrip().rstrip(',')}}}"
    return _decode(json.loads, whole, first_line)


def read_program(text: str, _first_line: int = 1) -> dict[str, str]:
    """Return the texts and flags in a JavaScript program by their names, without running it."""
    return dict(
        re.findall(
            r"(?m)^\s*(?:const )?(\w+)\s*[:=] *[\"'`]?((?<=[\"'`]).*(?=[\"'`])|true|false)[\"'`]?"
            r"[,;]?\s*$",
            text,
        )
    )


_READERS: dict[str, Callable[[str, int], Any]] = {
    **dict.fromkeys(("---", "---yaml"), read_yaml),
    **dict.fromkeys(("+++", "---toml"), read_toml),
    **dict.fromkeys(("{", ";;;", "---json"), read_json),
    "---js": read_program,
}


def read_tags(value: object, separator: str | None = ",") -> list[str]:
    """Return the names in a list or a text, each once; with separator None, split at blanks."""
    parts = value if isinstance(value, list) else str(value or "").split(separator)
    flat = (each for part in parts for each in (part if isinstance(part, list) else [part]))
    names = (str(part).strip(" \t\n\"'[]").lstrip("#") for part in flat if part is not None)
    return list(dict.fromkeys(name for name in names if name))


def read_flag(value: object) -> bool:
    """Return whether a value means yes, as text or as a boolean."""
    return str(value).strip().lower() in YES


def read_date(value: object) -> datetime | None:
    """Return the instant that a value names, naive without a zone, or None if it names none."""
    with suppress(ValueError):
        moment = read_moment(str(value))
        return moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    return None


def pick(
    value: Any, names: Collection[str] = ("name", "src", "url", "image", "filename", "path")
) -> str:
    """Return a value as text: the first of a list, or of the `names` that a table has."""
    inner = [value.get(each) for each in names] if isinstance(value, dict) else value
    if isinstance(inner, list):
        return next(filter(None, (pick(each, names) for each in inner)), "")
    return "" if inner is None or isinstance(inner, bool) else str(inner).strip()


def _decode(read: Callable[[str], Any], text: str, first_line: int) -> Any:
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:
        line, *_ = re.findall(r"line (\d+)", f"{fault}, line 1")
        raise HeadError(
            first_line - 1 + int(line), re.split(r": line| \(at", str(fault))[0]
        ) from fault
