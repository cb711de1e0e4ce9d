"""`redirects.txt` of the content folder: former addresses that belong to no text."""

import re
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize
from urllib.parse import unquote

from site_build.checks.facts import UrlMap, is_of_edge
from site_build.content.sources import GONE, LONGEST_NAME, read_bytes, stamp
from site_build.errors import Diagnostic

REDIRECTS = "redirects.txt"
_LARGEST = 16 * 1024 * 1024  # bytes: some hundred thousand lines

Redirects = dict[str, tuple[int, str]]
"""The line, from 1, and the present path by the former one, which may have `?` and a query.

They are decoded, and have no leading slash.
"""


def read_redirects(content: Path) -> tuple[Redirects, list[Diagnostic]]:
    """Return what the file says, and what is wrong with other lines of it.

    All findings are warnings: like a broken link, a bad line holds nothing up. Whoever lists the
    folder reports a file that cannot be read.
    """
    text, redirects, findings = "", Redirects(), list[Diagnostic]()
    with suppress(OSError):
        if stamp(content / REDIRECTS) != GONE:
            text = read_bytes(content, REDIRECTS, _LARGEST).decode("utf-8-sig", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(?:^|\s)#.*", "", line).split()
        match [*map(_decode, words)]:
            case [str(former), str(target)] if former != target and "?" not in target:
                first, _ = redirects.setdefault(former, (number, target))
                if first != number:
                    message = f"line {first} says where `{words[0]}` leads; keep one of the lines"
                    findings.append(_warn(number, message))
            case [_, *_]:
                message = "write an old path and a new one, such as `/?p=12 /journal/oak/`"
                findings.append(_warn(number, f"{line.strip()[:100]!r} is no redirect; {message}"))
    return redirects, findings


def _decode(address: str) -> str | None:
    path, _, query = address.partition("?")
    path = normalize("NFC", unquote(path))
    is_path = path == "/" or re.fullmatch(r"(?:/(?!\.{1,2}(?:/|$))[^/?#\ufffd]+)+/?", path)
    longest = max(len(each.encode()) for each in path.split("/"))  # disks have to take it
    if not is_path or not path.isprintable() or longest > LONGEST_NAME:
        return None
    return f"{path[1:]}?{unquote(query)}" if query else path[1:]


def check_redirects(redirects: Redirects, urls: UrlMap) -> list[Diagnostic]:
    """Return a warning for each line that has no effect, for what else the content gives."""
    findings, known = [], {*urls.documents, *urls.aliases, *urls.others}
    for former, (line, target) in redirects.items():
        to = urls.canonical(target)
        faults = {
            f"`/{former}` is an address of the site itself; remove the line": (
                former in known or f"{former}/" in known or is_of_edge(former)
            ),
            f"`/{target}` is a former address too; write the present one": (
                target in redirects and target not in known
            ),
            f"broken link: no page at `/{target}`; fix the new path": (
                to not in known and not urls.answers(to)
            ),
            f"the page at `/{target}` is a draft; publish it, or fix the new path": (
                to in urls.documents and urls.documents[to].draft
            ),
        }
        findings += [_warn(line, message) for message, is_so in faults.items() if is_so][:1]
    return findings


def _warn(line: int, message: str) -> Diagnostic:
    return Diagnostic(REDIRECTS, line, 1, "warning", message)
