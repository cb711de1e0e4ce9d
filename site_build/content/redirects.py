"""`redirects.txt` of the content folder: former addresses that belong to no text."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize
from urllib.parse import unquote

from site_build.addresses import SourceRules
from site_build.checks.facts import is_of_edge, map_urls
from site_build.content.sources import GONE, LONGEST_NAME, stamp
from site_build.errors import Diagnostic
from site_build.site import Document

REDIRECTS = "redirects.txt"

Redirects = dict[str, tuple[int, str]]
"""Line number, from 1, and present path, by former path, which may have `?` and a query.

Paths are decoded, and have no leading slash.
"""


def read_redirects(content: Path) -> tuple[Redirects, list[Diagnostic]]:
    """Return the redirects of the file, and findings about its invalid lines.

    All findings are warnings: like a broken link, a bad line stops no build. A file that cannot be
    read is reported where the folder is listed.
    """
    redirects, findings, text = Redirects(), list[Diagnostic](), ""
    with suppress(OSError):
        if stamp(content / REDIRECTS) != GONE:  # a regular file: reading a pipe may never end
            text = (content / REDIRECTS).read_text("utf-8-sig", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            match [*map(_decode, re.sub(r"(?:^|\s)#.*", "", line).split())]:
                case [str(former), str(target)] if "?" not in target and former not in redirects:
                    redirects[former] = number, target
                case [_, *_]:
                    findings.append(
                        _warn(
                            number,
                            f"{line.strip()[:100]!r} is no redirect, or the second of its path; "
                            "write one old path and a new one, such as `/?p=12 /journal/oak/`",
                        )
                    )
    return redirects, findings


def _decode(address: str) -> str | None:
    path, _, query = address.partition("?")
    path = normalize("NFC", unquote(path))
    longest = max(len(each.encode()) for each in path.split("/"))  # file systems limit it
    is_path = path == "/" or re.fullmatch(r"(?:/(?!\.{1,2}(?:/|$))[^/?\ufffd]+)+/?", path)
    if not is_path or "#" in address or longest > LONGEST_NAME or not path.isprintable():
        return None
    return f"{path[1:]}{query and '?'}{unquote(query)}"


def check_redirects(
    content: Path, documents: Iterable[Document], files: Iterable[str], rules: SourceRules
) -> list[Diagnostic]:
    """Return a warning for each line that is invalid, or that clashes with the site's addresses."""
    redirects, findings = read_redirects(content)
    urls = map_urls(documents if redirects else (), files, rules)
    known = {*urls.documents, *urls.aliases, *urls.others}
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
