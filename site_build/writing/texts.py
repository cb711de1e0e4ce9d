"""Texts that somebody sends: their bytes, their head, their conversion with a limit, findings."""

import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Final, TypeVar

import yaml

from edge_api.schema.writing import MAX_TEXT_BYTES, Finding
from site_build.addresses import name_alternate, name_file
from site_build.content.edits import STARTED_COMMENT, change_line
from site_build.content.head import YamlFaultError, read_entries
from site_build.content.kept import find_head
from site_build.errors import BuildError, Diagnostic
from site_build.parallel import in_background
from site_build.site import Document
from site_build.writing.versions import Refused

CONVERT_SECONDS: Final = 5
"""The most time for converting a text, since others wait: one of MAX_TEXT_BYTES takes one."""
_Result = TypeVar("_Result")


def encode(markdown: str | None) -> bytes:
    """Return the bytes of a text. Raises Refused for one that no file can hold."""
    try:
        raw = (markdown or "").encode()
    except UnicodeEncodeError:
        raise Refused("invalid", "markdown: holds half of a character; send it as UTF-8") from None
    if len(raw) > MAX_TEXT_BYTES:
        raise Refused("invalid", f"markdown: has more than {MAX_TEXT_BYTES} bytes; split it")
    if b"\0" in raw:
        raise Refused("invalid", "markdown: holds NUL; take it out")
    return raw


def find_title(raw: bytes) -> str:
    """Return the title of a text: its first line if that is a heading, or that in its head."""
    found = re.match(r"\s*#[ \t]+([^\n]+)", raw.decode(errors="replace"))
    found = found or re.search(r"(?im)^title[ \t]*:[ \t]*[\"']?([^\n]*?)[\"']?$", find_head(raw))
    return found[1].rstrip("# \t\r") if found else ""


def complete(raw: bytes, slug: str, now: datetime) -> bytes:
    """Return a text with a head, in which slug and date stand and which is that of a draft."""
    text = raw.decode()
    if not re.match(r"\ufeff?\s*(?:---|[A-Za-z_-]+:)", text):
        title = find_title(raw)
        body = re.sub(r"\A\s*#[^\n]*\n?\s*", "", text) if title else text
        head = yaml.safe_dump({"title": title or slug}, allow_unicode=True, width=sys.maxsize)
        raw = f"---\n{head}---\n\n{body}".encode()
    for key, value in (("slug", slug), ("date", f"{now:%Y-%m-%dT%H:%M:%SZ}{STARTED_COMMENT}")):
        if change_line(raw, key, None) == raw:
            raw = change_line(raw, key, value)
    return change_line(raw, "status", "draft")


def list_keys(raw: bytes) -> set[str]:
    """Return the keys of a head in lower case: those of its lines, and what YAML makes of them."""
    head = find_head(raw)
    found = re.findall(r"(?m)^[ \t]*[\"']?([\w-]+)[\"']?[ \t]*[:=]", head)
    with suppress(YamlFaultError):  # such a head is not published
        found += [each.key for each in read_entries(head)]
    return {each.lower().replace("-", "_") for each in found}


def run_apart(work: Callable[[], _Result]) -> _Result:
    """Return the result of `work`, in a process that can be ended whatever a text makes it do.

    Raises Refused if it takes too long.
    """

    def limited() -> _Result:
        resource.setrlimit(resource.RLIMIT_CPU, (CONVERT_SECONDS, CONVERT_SECONDS))
        signal.alarm(10 * CONVERT_SECONDS)
        return work()

    try:
        with in_background(limited, 2) as wait:
            return wait()
    except BuildError:
        raise Refused(
            "conflict", f"the text takes more than {CONVERT_SECONDS} s to convert; split it"
        ) from None


def name_files(document: Document) -> frozenset[str]:
    """Return the names of the files that show a document."""
    return frozenset({name_file(document.address), name_alternate(document.address)})


def list_findings(findings: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Return findings as answers have them."""
    return tuple(
        Finding(line=each.line, column=each.column, severity=each.severity, message=each.message)
        for each in findings
    )
