"""The front matter of other systems' texts: YAML, TOML or JSON above a body."""

import json
import re
import tomllib
from collections.abc import Callable
from datetime import datetime, time
from typing import Any

import yaml

from site_build.content.dates import read_moment

_HEAD = re.compile(
    r"\s*(?:---(?P<form>json|toml|yaml)?|(?P<plus>\+\+\+)|(?P<semi>;;;))[ \t]*\n"
    r"(?P<text>.*?)^(?(plus)\+\+\+|(?(semi);;;|(?:---|\.\.\.)))[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_UNCLOSED = re.compile(r"\s*(?:---|\+\+\+)[ \t]*\n[\w-]+[ \t]*[:=]")
_BARE_JSON = re.compile(r"\s*\{\s*\"")
_UNPRINTABLE = re.compile(
    "[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_ENTRY = re.compile(r"""(\s*(?:- )?[\w-]+:\ +)(["'](?![^"']*\S["']\s)|)(.*?)\2\s*$""", re.VERBOSE)
_LONGEST, _DEEPEST, _ALIASES, _MENDED = 500_000, 40, 16, 30


class HeadError(Exception):
    """A head that cannot be read; the message is a sentence with the line."""

    def __init__(self, line: int, why: str) -> None:
        """Keep the line, from 1, as `line`."""
        super().__init__(f"the head cannot be read in line {line}: {why}")
        self.line = line


class _Loader(yaml.CSafeLoader):
    """Reads plain values as text, but for `true`, `false`, `null` and nothing."""

    yaml_implicit_resolvers = {}  # noqa: RUF012


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("(?i:true|false)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile("(?:null|Null|NULL|~|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile("<<$"), ["<"])
# Tags of Ruby and the like: the text as it is written.
_Loader.add_multi_constructor("", lambda _loader, _tag, node: str(node.value))


def split_head(text: str) -> tuple[dict[str, Any], str, int]:
    """Return a text's head, its body, and the line at which the body begins, from 1.

    Numbers and dates of YAML are text, as written; dates of TOML are text that `read_date` reads.
    A text without a head has an empty one. Raises HeadError.
    """
    found = _HEAD.match(text)
    if _BARE_JSON.match(text):
        start = text.index("{")
        head, end = _decode(lambda data: json.JSONDecoder().raw_decode(data, start), text, 1)
        end += len(text[end:]) - len(text[end:].lstrip("\n"))
    elif found:
        inner, end, form = found["text"], found.end(), found["form"]
        first = text.count("\n", 0, found.start("text")) + 1
        if found["plus"] or form == "toml":
            head = read_toml(inner, first)
        elif found["semi"] or form == "json":
            data = inner if inner.lstrip().startswith("{") else f"{{{inner.rstrip().rstrip(',')}}}"
            head = _decode(json.loads, data, first)
        else:
            head = read_yaml(inner, first)
    elif _UNCLOSED.match(text):
        raise HeadError(1, "it has no end; write its first line again below it")
    else:
        head, end = None, 0
    if head is not None and not isinstance(head, dict):
        head, end = {}, 0  # a text that begins with a rule
    values = {str(key): value for key, value in (head or {}).items()}
    return values, text[end:], text.count("\n", 0, end) + 1


def read_yaml(text: str, first_line: int = 1) -> Any:
    """Return what a text in YAML holds, with numbers and dates as text. Raises HeadError.

    A value that YAML misreads, such as a title with a colon, is read as if it were in quotes.
    """
    if len(text) > _LONGEST:
        raise HeadError(first_line, f"it has more than {_LONGEST} characters; shorten it")
    lines = _UNPRINTABLE.sub("", text).split("\n")
    mended: set[int] = set()
    while True:
        source = "\n".join(lines)
        try:
            _refuse_extravagance(source, first_line)
            return yaml.load(source, Loader=_Loader)  # noqa: S506 - a safe loader
        except yaml.MarkedYAMLError as fault:
            # What is left open is missed below; its context names the line that opens it.
            opened = re.search("quoted|flow|simple key", fault.context or "")
            mark = fault.context_mark if opened else fault.problem_mark
            at = mark.line if mark else 0
            entry = _ENTRY.match(lines[at]) if at < len(lines) else None
            if "\t" in source:
                lines = source.expandtabs(4).split("\n")
            elif not entry or at in mended or len(mended) > _MENDED:
                raise HeadError(first_line + at, f"{fault.problem}; quote the value") from fault
            else:
                lines[at] = entry[1] + json.dumps(entry[3], ensure_ascii=False)
                mended.add(at)


def read_toml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return what a text in TOML holds, with dates as text. Raises HeadError."""
    values = _decode(tomllib.loads, text, first_line)
    return dict(json.loads(json.dumps(values, default=str)))


def read_tags(value: object, separator: str | None = ",") -> list[str]:
    """Return the names that a list or a text holds, each once; None separates at blanks."""
    parts = value if isinstance(value, list) else str(value or "").split(separator)
    names = (str(part).strip(" \t\n\"'[]").lstrip("#") for part in parts if part is not None)
    return list(dict.fromkeys(name for name in names if name))


def read_flag(value: object) -> bool:
    """Return whether a value says yes, as text or as a boolean."""
    return str(value).strip().lower() in {"true", "yes", "on", "y", "1"}


def read_date(value: object) -> datetime | None:
    """Return the instant that a value says, naive without a zone, or None if it says none."""
    try:
        moment = read_moment(str(value))
    except ValueError:
        return None
    return moment if isinstance(moment, datetime) else datetime.combine(moment, time())


def _decode(read: Callable[[str], Any], text: str, first_line: int) -> Any:
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:
        within = re.search(r"line (\d+)", str(fault))
        line = first_line - 1 + int(within[1]) if within else first_line
        raise HeadError(line, re.split(r": line| \(at", str(fault))[0]) from fault


def _refuse_extravagance(text: str, first_line: int) -> None:
    """Refuse what fills the memory or the stack, before anything is composed."""
    depth = aliases = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > _DEEPEST or aliases > _ALIASES:
            line = first_line + (event.start_mark.line if event.start_mark else 0)
            raise HeadError(line, "it is nested too deeply or has many aliases; write values out")
