"""`share`: shares a draft as a page at a secret address, lists shares, and ends them."""

import json
import re
import secrets
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urljoin

from click import Argument, IntRange, Option
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.commands import Arguments, require_one
from edge_api.schema.environment import BUILD
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.paths import SHARED
from edge_api.schema.shares import RECORD_FILE, list_shares, locate_share
from site_build import addresses
from site_build.build.assets import REFERENCE
from site_build.build.builder import KnownContent
from site_build.build.fingerprint import fingerprint_code
from site_build.build.memory import PreviewBuild
from site_build.checks.facts import is_of_edge
from site_build.cli.serve import make_request
from site_build.cli.terminal import open_console, with_noun
from site_build.content.library import ContentLibrary
from site_build.errors import BuildError
from site_build.images.responsive import resolve
from site_build.options import CONTENT, JOBS, OUTPUT, SITE_URL
from site_build.pelican_plugin.plugin import build_preview, explain_disk_errors
from site_build.pelican_plugin.settings import load_settings, read_dialect
from site_build.site import Document
from site_build.text import write_instant

# Elements that a share omits: those with the page's own address, and `robots`, which it replaces.
# The last two lead to the page's Markdown and to a form.
_OMITTED_ELEMENTS = """link[rel="canonical"], link[rel="alternate"], meta[property],
    meta[name="robots"], meta[name^="twitter:"], script[type="application/ld+json"],
    li:has(> a[href="/{}"]), p:has(> a[href*="/?about="])"""
# Replacement for the end of the head and the start of the body: a notice that this is a draft.
_DRAFT_NOTICE = r"""<meta name="robots" content="noindex">
\g<0>
<aside class="leaf small" aria-label="Shared draft" lang="en" dir="ltr"><p><strong>This is a
draft</strong>, shared until {}. It may still change: please do not publish it.</p></aside>"""


PARAMS: Final = (
    Argument(["slug"], required=False, help="slug of a draft or scheduled post"),
    Option(["--list"], is_flag=True, help="list what is shared now"),
    Option(
        ["--revoke"], metavar="SLUG|DIGEST|all", help="end the shares of a slug, one share, or all"
    ),
    Option(
        ["--days"],
        type=IntRange(1, 365),
        default=7,
        metavar="N",
        help="days until it ends, 1 to 365 (default: 7)",
    ),
    *CONTENT,
    OUTPUT,
    SITE_URL,
    JOBS,
)


def run(arguments: Arguments) -> int:
    """Share a draft, list shares, or revoke some. Raises BuildError."""
    require_one(arguments, "SLUG", "--list", "--revoke")
    named, console, now = arguments.revoke, open_console(), datetime.now(UTC).replace(microsecond=0)
    shares = list_shares(arguments.output, now)
    if arguments.slug:
        console.print(_share(arguments, now))
    elif named:
        ended = [e for e in shares if named in {"all", shares[e]["slug"], shares[e]["digest"]}]
        if not ended:
            raise BuildError(f"nothing that is shared is called {named!r}; see share --list")
        with explain_disk_errors(arguments.output):
            for folder in ended:
                shutil.rmtree(folder)
        console.print(f"{with_noun(len(ended), 'share')} revoked")
    for share in shares.values() if arguments.list else ():
        console.print("  ".join(share.values()))
    return 0


def _share(arguments: Arguments, now: datetime) -> str:
    """Write a share, completely or not at all; return a message about it. Raises BuildError."""
    slug, output, origin = arguments.slug, arguments.output, arguments.site_url
    settings = load_settings(arguments.content, origin)
    request, dialect = make_request(arguments), read_dialect(settings)
    content = ContentLibrary(request, fingerprint_code(), dialect).collect()
    unpublished = {each.path: each for each in content.documents if not each.is_public_at(now)}
    draft = next((each for each in unpublished.values() if each.slug == slug), None)
    if draft is None:
        raise BuildError(f"no draft without errors has the slug {slug!r}; see {BUILD} list drafts")
    # All other documents that are not public become drafts, so that the page does not list them.
    shown = tuple(
        replace(e, draft=e.path in unpublished and e is not draft) for e in content.documents
    )
    build = build_preview(request, origin, KnownContent(replace(content, documents=shown)))
    expires, token = now + timedelta(days=arguments.days), secrets.token_urlsafe(16)  # 128 bits
    until = f"{expires:%-d %B %Y, %H:%M} UTC"
    made = _ShareFiles(build, draft, output / CURRENT_LINK / SITE_FOLDER, until)
    folder = locate_share(output, token)
    record = {
        "digest": folder.name[:12],
        "made": write_instant(now),
        "expires": write_instant(expires),
        "slug": slug,
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
    return (
        f"{draft.title} is shared until {until}, with all who have this address:\n"
        f"{origin}{SHARED}{token}/\n{BUILD} share --revoke {slug} ends that"
    )


class _ShareFiles:
    """The files of a share by name: a page, and the files that it and its style sheets use."""

    def __init__(self, build: PreviewBuild, draft: Document, site: Path, until: str) -> None:
        """`site` is the folder of the served site. Raises BuildError."""
        self._build, self._site, self._content = build, site, {*build.content.files.values()}
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
        html = re.sub(
            r"</head>\s*<body[^>]*>", _DRAFT_NOTICE.format(until), tree.html or "", count=1
        )
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
        if is_shown and path not in self._names and (data := self._build.make(path)) is not None:
            name = self._names[path] = f"{len(self._names) + 1}{PurePosixPath(path).suffix}"
            rename = partial(self._rename_reference, path)
            self.by_name[name] = REFERENCE.sub(rename, data) if name.endswith(".css") else data
        return self._names.get(path, "")

    def _rename_reference(self, sheet: str, found: re.Match[bytes]) -> bytes:
        """Return a reference of a style sheet, with the name that the share has for its target."""
        address = (found["address"] or found["sheet"]).decode()
        named = f'url("{self._replace_address(sheet, address) or address}")'
        return (found["import"] or b"") + named.encode()
