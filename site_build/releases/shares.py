"""Shared drafts: each one page with its pictures, behind a secret address, in no build."""

import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape, unescape
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

from edge_api.schema.environment import BUILD
from edge_api.schema.index import CURRENT_LINK, SITE_FOLDER
from edge_api.schema.shares import PAGE_FILE, Share, list_shares, locate_share, locate_shares
from site_build import addresses
from site_build.build.memory import PreviewBuild
from site_build.checks.facts import is_of_edge
from site_build.content.sources import Content
from site_build.errors import BuildError
from site_build.pelican_plugin.plugin import plain_errors
from site_build.site import Document

_TOKEN_BYTES = 16
_TAG = re.compile(r"""<(?P<name>[a-z]+)(?:"[^"]*"|'[^']*'|[^>"'])*>\n?""", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""\s(?P<name>href|src|srcset|poster)=(?P<quote>["'])(?P<value>.*?)(?P=quote)""", re.DOTALL
)
_CANDIDATE = re.compile(r"[^\s,]*/\S*?(?=,?(?:\s|$))")
"""An address in a `srcset`."""
_TELLING = re.compile(
    r"""\srel=["'](?:canonical|alternate)["']|\s(?:property|name)=["'](?:og:|article:|twitter:|robots)"""
)
"""Elements of the head that tell programs where the page is, or will be."""
_STRUCTURED_DATA = re.compile(
    r"""<script type=["']application/ld\+json["']>.*?</script>\n?""", re.DOTALL
)
_BODY = re.compile(r"<body\b[^>]*>")
_ROBOTS = '<meta name="robots" content="noindex">\n'
_BANNER = (
    '\n<aside class="leaf small" aria-label="Shared draft" lang="en" dir="ltr">'
    "<p><strong>This is a draft</strong>, shared until {until}. It may still change: "
    "please do not publish it or pass its address on.</p></aside>"
)


def publish_only(content: Content, chosen: Document, now: datetime) -> Content:
    """Return the content with one more public document than there are at `now` (UTC)."""
    documents = (
        replace(each, draft=each.path != chosen.path and not each.is_public_at(now))
        for each in content.documents
    )
    return replace(content, documents=tuple(documents))


def word_expiry(share: Share) -> str:
    """Return until when a share can be read, in words."""
    return f"{share.expires.day} {share.expires:%B %Y, %H:%M} UTC"


def write_share(output: Path, build: PreviewBuild, document: Document, share: Share) -> str:
    """Write a document's page as a share of its own, whole or not at all, and return its token.

    Raises BuildError when the page cannot be made or written.
    """
    files = _SharedPage(build, document, output / CURRENT_LINK / SITE_FOLDER).make(share)
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    staging = locate_shares(output) / f".{os.getpid()}"
    with plain_errors(output):
        try:
            staging.mkdir(parents=True)
            share.model_copy(update={"files": tuple(files)}).write(staging)
            for name, data in files.items():
                (staging / name).write_bytes(data)
            staging.rename(locate_share(output, token))
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return token


def find_shares(output: Path, now: datetime) -> Sequence[tuple[str, Share]]:
    """Return the digest of each share that can be read at `now`, and what it shares.

    What has expired, or was left half done, is deleted.
    """
    found = []
    with plain_errors(output):
        for folder, share in list_shares(output, now):
            if share is None:
                shutil.rmtree(folder, ignore_errors=True)
            elif not folder.name.startswith("."):  # another `share` is at work there
                found.append((folder.name, share))
    return sorted(found, key=lambda each: each[1].made)


def revoke_share(output: Path, digest: str) -> None:
    """Delete a share; from the next request on nobody can read it. Raises BuildError."""
    with plain_errors(output):
        shutil.rmtree(locate_shares(output) / digest)


class _SharedPage:
    """The page of one document as a share has it, and the files that it takes along."""

    def __init__(self, build: PreviewBuild, document: Document, site: Path) -> None:
        """`site` has the public files of the current build."""
        self._build, self._document, self._site = build, document, site
        self._origin, self._own = build.site.identity.url, set(build.content.files.values())
        self._names: dict[str, str] = {}
        self._files: dict[str, bytes] = {}

    def make(self, share: Share) -> Mapping[str, bytes]:
        """Return all files of the share by their names; raises BuildError."""
        path = addresses.name_file(self._document.address)
        page = self._build.make(path)
        if page is None:
            raise BuildError(f"the site makes no page {path}; fix the setting that names it")
        html = _STRUCTURED_DATA.sub("", page.decode())
        twin = re.escape(f"/{addresses.name_alternate(self._document.address)}")
        html = re.sub(rf'<li>\s*<a href="{twin}">[^<]*</a>\s*</li>\n?', "", html)
        html = _TAG.sub(self._change, html).replace("</head>", f"{_ROBOTS}</head>", 1)
        banner = _BANNER.format(until=word_expiry(share))
        html = _BODY.sub(lambda body: f"{body[0]}{banner}", html, count=1)
        return {PAGE_FILE: html.encode(), **self._files}

    def _change(self, tag: re.Match[str]) -> str:
        if tag["name"].lower() in {"link", "meta"} and _TELLING.search(tag[0]):
            return ""
        return _ATTRIBUTE.sub(self._point, tag[0])

    def _point(self, attribute: re.Match[str]) -> str:
        name, value = attribute["name"], unescape(attribute["value"])
        if name == "srcset":
            value = _CANDIDATE.sub(lambda each: self._locate(each[0]) or each[0], value)
        elif (located := self._locate(value)) is not None:
            value = located
        elif name == "href":  # of a page that is not public; its words stay
            return ""
        return f' {name}="{escape(value)}"'

    def _locate(self, address: str) -> str | None:
        """Return an address as the shared page has it; None where nothing answers."""
        try:
            url = urlsplit(urljoin(f"{self._origin}/{self._document.address}", address))
        except ValueError:
            return address
        if f"{url.scheme}://{url.netloc}" != self._origin:
            return address
        path, url = unquote(url.path).removeprefix("/"), url._replace(scheme="", netloc="")
        if path == self._document.address:
            return url._replace(path="").geturl() or "./"
        if path.startswith(addresses.PICTURES) or path in self._own:
            return self._take(path)
        files = (addresses.name_file(each) for each in (path, f"{path}/"))
        if is_of_edge(path) or any((self._site / each).is_file() for each in files):
            return url.geturl()
        if path.startswith(addresses.THEME):
            raise BuildError(f"the current build lacks {path}: run {BUILD} build, then share again")
        return None

    def _take(self, path: str) -> str | None:
        """Take a file along; return its name in the share."""
        if path not in self._names:
            data = self._build.make(path)
            if data is None:
                return None
            name = f"{len(self._names) + 1}{PurePosixPath(path).suffix}"
            self._names[path], self._files[name] = name, data
        return self._names[path]
