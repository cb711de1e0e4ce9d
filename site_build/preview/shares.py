"""Shares and previews: a draft made into a page at a secret address, with the files it uses."""

import json
import re
import resource
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.environment import BUILD
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.shares import (
    PAGE_SECONDS,
    PREVIEWS,
    RECORD_FILE,
    SHARES,
    list_shares,
    locate_share,
)
from site_build import addresses
from site_build.build.assets import REFERENCE
from site_build.build.builder import KnownContent
from site_build.build.fingerprint import fingerprint_code
from site_build.build.memory import PreviewBuild
from site_build.cache import locate_cache
from site_build.checks.facts import is_of_edge
from site_build.content.library import ContentLibrary
from site_build.errors import BuildError
from site_build.images.responsive import resolve
from site_build.pelican_plugin.plugin import build_preview, explain_disk_errors
from site_build.pelican_plugin.settings import load_settings, read_dialect
from site_build.progress import Request
from site_build.site import Document
from site_build.text import write_instant

_DAYS = {PREVIEWS: 1, SHARES: 7}
"""The life of each kind, in days, where the desk asks for it."""
# Elements that a share omits: those with the page's own address, and `robots`, which it replaces.
# The last two lead to the page's Markdown and to a form.
_OMITTED_ELEMENTS = """link[rel="canonical"], link[rel="alternate"], meta[property],
    meta[name="robots"], meta[name^="twitter:"], script[type="application/ld+json"],
    li:has(> a[href="/{}"]), p:has(> a[href*="/?about="])"""
# Replacements for the end of the head and the start of the body.
_NOT_INDEXED = r"""<meta name="robots" content="noindex">
\g<0>
"""
_DRAFT_NOTICE = """<aside class="leaf small" aria-label="Shared draft" lang="en" dir="ltr">
<p><strong>This is a draft</strong>, shared until {}. It may still change: please do not publish
it.</p></aside>"""


def write_share(  # noqa: PLR0913  a page, and where and until when it is shown
    request: Request,
    origin: str,
    output: Path,
    is_meant: Callable[[Document], bool],
    expires: datetime,
    *,
    kind: str = SHARES,
    text: tuple[str, str] | None = None,
    more: Mapping[str, Path] = MappingProxyType({}),
) -> tuple[Document | None, str, str]:
    """Write a share, completely or not at all; return its document, its token and until when.

    `text` is a path in the content, and the digest of the kept source that is shown in its place;
    `more` are pictures beside those of the content. Without a document that is meant, nothing is
    written. Raises BuildError.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    library = ContentLibrary(
        request, fingerprint_code(), read_dialect(load_settings(request.content, origin))
    )
    if text:
        library.replace_source(*text)
    content = library.collect()
    unpublished = {each.path for each in content.documents if not each.is_public_at(now)}
    draft = next(filter(is_meant, content.documents), None)
    if draft is None:
        return None, "", ""
    # All other documents that are not public become drafts, so that the page does not list them.
    shown = tuple(
        replace(e, draft=e.path in unpublished and e is not draft) for e in content.documents
    )
    build = build_preview(request, origin, KnownContent(replace(content, documents=shown)))
    until, token = f"{expires:%-d %B %Y, %H:%M} UTC", secrets.token_urlsafe(16)  # 128 bits
    notice = _NOT_INDEXED + (_DRAFT_NOTICE.format(until) if kind == SHARES else "")
    made = _ShareFiles(build, draft, output / CURRENT_LINK / SITE_FOLDER, notice, more)
    folder = locate_share(output, token, kind)
    record = {
        "digest": folder.name[:12],
        "made": write_instant(now),
        "expires": write_instant(expires),
        "slug": draft.slug,
        "title": draft.title,
    }
    files = {RECORD_FILE: json.dumps(record).encode(), **made.by_name}
    with explain_disk_errors(output):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder.parent) as staging:
            # Unlike the temporary folder, this one can be read by the edge's user.
            (whole := Path(staging, "share")).mkdir()
            for name, data in files.items():
                (whole / name).write_bytes(data)
            whole.rename(folder)
    return draft, token, until


class _ShareFiles:
    """The files of a share by name: a page, and the files that it and its style sheets use."""

    def __init__(
        self,
        build: PreviewBuild,
        draft: Document,
        site: Path,
        notice: str,
        more: Mapping[str, Path],
    ) -> None:
        """`site` is the folder of the served site, `more` are more pictures. Raises BuildError."""
        self._build, self._site, self._more = build, site, more
        self._content = {*build.content.files.values(), *more}
        self._names: dict[str, str] = {}
        self.by_name: dict[str, bytes] = {}
        tree = LexborHTMLParser(build.make(addresses.name_file(draft.address)) or b"")
        for node in tree.css(_OMITTED_ELEMENTS.format(addresses.name_alternate(draft.address))):
            node.decompose()
        for node in tree.css("[href], [src], [srcset], [poster]"):
            for name in node.attributes.keys() & {"href", "src", "srcset", "poster"}:
                value = re.sub(
                    r"[^\s,]*/\S*?(?=,?(?:\s|$))",  # an address, of which a `srcset` has several
                    lambda each: self._replace_address(draft.address, each[0]),
                    node.attributes[name] or "",
                )
                if value:
                    node.attrs[name] = value
                else:
                    del node.attrs[name]
        html = re.sub(r"</head>\s*<body[^>]*>", notice, tree.html or "", count=1)
        self.by_name["index.html"] = html.encode()

    def _replace_address(self, base: str, address: str) -> str:
        """Return the new address for one in the file `base`; empty if nothing answers there."""
        address = re.sub(rf"^{re.escape(self._build.site.identity.url)}(?=/)", "", address)
        path, rest = resolve(base, address), re.sub("^[^?#]*", "", address)
        if path == base:
            return rest or "./"
        if name := self._add_file(path):
            return f"{name}{rest}"
        if is_of_edge(path) or any((self._site / f"{path}{end}").exists() for end in ("", ".html")):
            return urljoin(f"/{base}", address) if path else address
        if path.startswith(addresses.THEME):
            raise BuildError(f"the current build lacks {path}; run {BUILD} build before")
        return ""

    def _add_file(self, path: str) -> str:
        """Add a picture, style sheet or font; return its name, or an empty one if there is none."""
        is_style = path.startswith(addresses.THEME) and not path.endswith(".js")
        is_shown = is_style or path.startswith(addresses.PICTURES) or path in self._content
        if is_shown and path not in self._names and (data := self._read(path)) is not None:
            name = self._names[path] = f"{len(self._names) + 1}{PurePosixPath(path).suffix}"
            rename = partial(self._rename_reference, path)
            self.by_name[name] = REFERENCE.sub(rename, data) if name.endswith(".css") else data
        return self._names.get(path, "")

    def _read(self, path: str) -> bytes | None:
        return self._more[path].read_bytes() if path in self._more else self._build.make(path)

    def _rename_reference(self, sheet: str, found: re.Match[bytes]) -> bytes:
        """Return a reference of a style sheet, with the name that the share has for its target."""
        address = (found["address"] or found["sheet"]).decode()
        named = f'url("{self._replace_address(sheet, address) or address}")'
        return (found["import"] or b"") + named.encode()


def main() -> int:
    """Print the token of a page with the text from standard input, or what is wrong.

    It is run as a process of its own: it takes seconds, and reads the whole content.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (PAGE_SECONDS, PAGE_SECONDS))
    content, output, drafts = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[6])
    site_url, kind, path = sys.argv[3:6]
    raw, now = sys.stdin.buffer.read(), datetime.now(UTC).replace(microsecond=0)
    list_shares(output, now, kind)  # it deletes expired ones
    with TemporaryDirectory() as name:
        folder, digest = Path(name), sha256(raw).hexdigest()
        (folder / digest).write_bytes(raw)
        request = Request(
            content=content,
            site_folder=folder,
            state=folder,
            previous_state=folder,
            cache=locate_cache(output),
            now=datetime.max.replace(tzinfo=UTC),  # by then, every post has appeared
            jobs=1,
            kept_sources=folder,
        )
        try:
            _, token, _ = write_share(
                request,
                site_url,
                output,
                lambda each: each.path == path,
                now + timedelta(days=_DAYS[kind]),
                kind=kind,
                text=(path, digest),
                more={each: drafts / each for each in sys.argv[7:]},
            )
        except BuildError as error:
            sys.stdout.write(str(error))
            return 1
    sys.stdout.write(token or "the head of the text cannot be read; mend it")
    return int(not token)


if __name__ == "__main__":
    sys.exit(main())
