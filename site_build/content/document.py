"""Reads one source file: bytes in, a Document and every defect of its head out.

It finds where the head ends and the text begins. It opens no file, and uses no other document.
"""

import codecs
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from unicodedata import normalize
from zoneinfo import ZoneInfo

from selectolax.lexbor import LexborHTMLParser

from site_build.addresses import SourceRules
from site_build.checks.analyse import convert
from site_build.checks.raw_markup import find_excess
from site_build.content.dates import read_instant
from site_build.content.front_matter import KEYS, LONGEST_DESCRIPTION, PELICAN_KEYS
from site_build.content.head import (
    HANDLER,
    SECOND_COLON_FAULT,
    Fault,
    HeadEntry,
    YamlFaultError,
    find_value_offset,
    make_entry,
    read_entries,
    read_head,
    read_pelican_head,
)
from site_build.content.kept import find_head, is_withdrawn
from site_build.errors import Diagnostic
from site_build.site import UNDATED, Alias, Document, Kind
from site_build.text import Places, find_control_characters, make_slug

_BEGINNING_LENGTH = 4_000
"""Code points at the beginning of a text in which the first paragraph is searched."""

NOT_PROSE = "sup:has(a.footnote-ref), script, style"
"""Selector of elements that a paragraph loses on other pages: footnote marks, scripts, styles."""


def summarise(document: Document, longest: int) -> str:
    """Return the first paragraph as plain text of up to `longest` code points; never raises."""
    beginning = document.markdown
    if len(beginning) > _BEGINNING_LENGTH:  # keep link definitions from further down
        end = beginning.rfind("\n\n", 0, _BEGINNING_LENGTH)
        end = end if end > 0 else _BEGINNING_LENGTH
        definitions = re.compile(r"(?m)^ {0,3}\[[^\[\]^\n]+\]:[^\n]+$").findall(beginning, end)
        beginning = "\n".join([beginning[:end], "", *definitions])
    if find_excess(beginning):
        return ""
    try:
        page = LexborHTMLParser(convert(document, beginning).html)
    except Exception:  # noqa: BLE001 - a check of the whole text reports what the converter raised
        return ""
    for paragraph in page.css("body > p"):
        for mark in paragraph.css(NOT_PROSE):
            mark.decompose()
        if text := " ".join(paragraph.text().split()):
            if len(text) <= longest:
                return text
            words = text[:longest].rpartition(" ")[0] or text[: longest - 1]
            return words.rstrip(" ,;:.\u2013\u2014-") + "\u2026"
    return ""


LARGEST_FILE = 2 * 1024 * 1024
"""Most bytes of a source file: some three hundred thousand words."""

_RULES = SourceRules()


def read_document(
    path: str, raw: bytes, rules: SourceRules = _RULES
) -> tuple[Document | None, list[Diagnostic]]:
    """Return the document, or None if errors prevent one, with all findings about the file.

    `path` is relative to the content folder, with `/`. Never raises, whatever the bytes.
    """
    text, faults = _decode(raw)
    document = None
    if not faults:
        document, faults = _read_text(path, text, hashlib.sha256(raw).hexdigest(), rules)
    places = Places(text)
    return document, sorted(
        Diagnostic(path, *places.locate(fault.offset), fault.severity, fault.message)
        for fault in faults
    )


def guess_publication(raw: bytes, rules: SourceRules) -> datetime | None:
    """Return the instant (UTC) at which a file with errors would be published, from its head.

    Returns UNDATED without a readable date, and None if the author seems to withhold the file.
    """
    text, faults = _decode(raw)
    parts = None if faults else _split(text)
    known = parts[0] if parts and not isinstance(parts, Fault) else []
    lines = [f"{e.key}: {' '.join(str(e.value).split())}" for e in known]
    if is_withdrawn("\n".join(lines) or find_head(raw)):
        return None
    with suppress(ValueError):
        return max(
            read_instant(str(e.value), ZoneInfo(rules.timezone)) for e in known if e.key == "date"
        )
    return UNDATED


def _decode(raw: bytes) -> tuple[str, list[Fault]]:
    r"""Return the text with `\n` line ends, up to the first undecodable byte, and its faults."""
    if len(raw) > LARGEST_FILE:
        return "", [Fault(0, f"the file is larger than {LARGEST_FILE} bytes; split it")]
    raw = raw.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        message = f"byte 0x{raw[fault.start]:02X} is not UTF-8; save the file as UTF-8"
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message = "the file is UTF-16; save it as UTF-8"
        text = raw[: fault.start].decode()
        return text, [Fault(len(text), message)]
    found = find_control_characters(text)
    if not found:
        return text, []
    sign = text[found[0]]
    name = "NUL" if sign == "\0" else f"the control character U+{ord(sign):04X}"
    more = f" (the first of {len(found)})" if len(found) > 1 else ""
    return text, [Fault(found[0], f"the text holds {name}{more}; take it out")]


def _read_text(
    path: str, text: str, digest: str, rules: SourceRules
) -> tuple[Document | None, list[Fault]]:
    parts = _split(text)
    if isinstance(parts, Fault):
        return None, [parts]
    entries, fence_at, body_at, body = parts
    kind: Kind = "page" if rules.is_page(path) else "post"
    declared = {name.lower(): name for name in rules.extra}
    extra = tuple((declared[e.key], e.typed) for e in entries if e.key in declared)
    places = Places(text)
    entries += _read_file_name(path, entries, rules)
    entries += _choose_slug(path, entries, rules)
    head, faults = read_head(kind, fence_at, entries, rules, places)
    if head is None or any(fault.severity == "error" for fault in faults):
        return None, faults
    published = head.date or UNDATED
    folder = PurePosixPath(path).parent.name if rules.folder_is_category else ""
    at = {
        name: places.locate(find_value_offset(entries, name))
        for name in ("slug", "series", "image")
    }
    document = Document(
        path=path,
        kind=kind,
        slug=head.slug,
        address="",
        title=head.title,
        description=head.description,
        excerpt=head.excerpt,
        published=published,
        updated=head.updated or published,
        tags=head.tags,
        series=head.series if kind == "post" else "",
        author=head.author,
        category=head.category or folder or rules.category if kind == "post" else "",
        lang=head.lang,
        draft=head.status == "draft",
        hidden=head.status == "hidden",
        image=head.image,
        markdown=f"{body}\n" if body else "",
        body_line=places.locate(body_at)[0],
        digest=digest,
        slug_at=at["slug"],
        series_at=at["series"],
        extra=extra,
    )
    document = replace(document, address=_locate(document, rules))
    # If the author gave no description, the first paragraph or the title replaces it.
    description = document.description or summarise(document, LONGEST_DESCRIPTION) or document.title
    aliases: dict[str, Alias] = {}
    members = next((each.members_at for each in entries if each.key == "aliases"), ())
    for given, place in zip(head.aliases, members, strict=True):
        former = _canonical_path(document, given, rules)
        slug = rules.addresses.find_slug(former)
        aliases.setdefault(former, Alias(former, slug, *places.locate(place)))
    if head.image:  # put the picture before the text, on the line that names it
        blank = "\n" * (document.body_line - at["image"][0])
        alt = re.sub(r"([\[\]\\])", r"\\\1", head.image_alt)
        text = f"![{alt}]({head.image}){blank}{document.markdown}"
        document = replace(document, markdown=text, body_line=at["image"][0])
    document = replace(
        document,
        description=description,
        excerpt=document.excerpt or description,
        aliases=(*aliases.values(),),
    )
    return document, faults


def _read_file_name(path: str, entries: list[HeadEntry], rules: SourceRules) -> Iterator[HeadEntry]:
    """Yield entries from the name of the file for keys that its head lacks."""
    found = re.match(rules.name_pattern, PurePosixPath(path).stem)
    named = {PELICAN_KEYS.get(each.key, each.key) for each in entries}
    for key, value in (found.groupdict() if found else {}).items():
        if value and key in KEYS and key not in named:
            yield make_entry(key, value, 0, 0)


def _canonical_path(document: Document, alias: str, rules: SourceRules) -> str:
    """Return the path of a former address, which may be given as a slug."""
    alias = normalize("NFC", alias)
    if not alias.startswith("/"):
        return _locate(replace(document, slug=alias), rules)
    path = re.sub("(?:^|(?<=/))index[.]html$", "", alias.removeprefix("/"))
    return path if not path or path.endswith(("/", ".html")) else f"{path}/"


def _split(text: str) -> tuple[list[HeadEntry], int, int, str] | Fault:
    """Return the head's entries, the offsets of its fence and of the body, and the body."""
    start = len(text) - len(text.lstrip())
    opening = HANDLER.FM_BOUNDARY.match(text, start)
    if opening is None and (found := read_pelican_head(text)):
        return found[0], 0, found[1], text[found[1] :].rstrip()
    if opening is None:
        what = "the file is empty" if start == len(text) else "the file has no front matter"
        fix = "begin it with `---`, the keys title and date, and `---` again"
        return Fault(0 if start == len(text) else start, f"{what}; {fix}")
    try:  # python-frontmatter leaves a line end at the start of each part.
        head, body = (part.removeprefix("\n") for part in HANDLER.split(text))
    except ValueError:
        return Fault(start, "the front matter is never closed; add a line `---` below its keys")
    head_at = opening.end() + 1
    try:
        entries = read_entries(head, head_at)
    except YamlFaultError as fault:
        found = read_pelican_head(head, head_at)
        # In Pelican's lines `Key: value`, a value may have a colon, unless it begins with a
        # character that has a meaning in YAML.
        is_broken_yaml = SECOND_COLON_FAULT not in str(fault) or re.search(
            r"(?m)^[^:\n]*:[ \t]*[\[{\"'|>&*!%@`#-]", head
        )
        if is_broken_yaml or found is None or found[1] < len(head):
            return Fault(fault.offset, f"the front matter {fault}")
        entries = found[0]
    return entries, start, len(text) - len(body), body.rstrip()


def _choose_slug(path: str, entries: list[HeadEntry], rules: SourceRules) -> Iterator[HeadEntry]:
    """Yield the slug that Pelican makes for a head without one; remove an empty `slug` entry."""
    title = next((each for each in entries if each.key == "title"), None)
    if title is None or any(each.key == "slug" and each.value for each in entries):
        return
    source = title.value if rules.slug_source == "title" else PurePosixPath(path).stem
    if slug := make_slug(str(source)):
        entries[:] = [each for each in entries if each.key != "slug"]
        yield make_entry("slug", slug, title.key_at, title.value_at)


def _locate(document: Document, rules: SourceRules) -> str:
    return rules.addresses.locate(
        document.kind,
        document.slug,
        document.published.astimezone(ZoneInfo(rules.timezone)),
        lang=document.lang or rules.lang,
        category=make_slug(document.category),
        author=make_slug(document.author.partition(";")[0] or rules.author),
    )
