"""Ways to change a public address with `posts:draft` alone, as values that a test sends."""

import base64
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from PIL import Image

from tests.edge.conftest import run_build
from tests.edge.mcp.agents import PATH as MCP

SOURCES: Final = "/api/public/v1/sources"
FIRST: Final = """---
title: The first
slug: the-first
date: 2026-01-01T10:00:00Z
description: How it began.
aliases: [the-former]
---

It began with ![a cover](/images/cover.png), and [a street](/journal/straße/).
"""
CONTENT: Final = {
    "posts/the-first.md": FIRST,
    "posts/cafe.md": "---\ntitle: Café\nslug: café\ndate: 2026-02-01\n---\n\nOf coffee.\n",
    "posts/street.md": "---\ntitle: Straße\nslug: straße\ndate: 2026-03-01\n---\n\nOf streets.\n",
    "posts/hidden.md": "---\ntitle: Hid\nslug: hid\ndate: 2026-03-02\nstatus: hidden\n---\n\nNo.\n",
    "posts/later.md": "---\ntitle: Later\nslug: later\ndate: 2090-01-01\n---\n\nIn time.\n",
    "posts/begun.md": "---\ntitle: Begun\nslug: begun\nstatus: draft\n---\n\nNot yet.\n",
    "pages/about.md": "---\ntitle: About\n---\n\nWho we are.\n",
}
"""A journal with a post of each state."""
AFTER_ALL: Final = "2091-01-01T00:00:00Z"
"""An instant after the dates of all posts, for builds."""


@dataclass(frozen=True)
class Attack:
    """One request, over HTTP or as the call of a tool."""

    name: str
    method: str = ""
    """Of HTTP; empty for a tool."""
    target: str = ""
    """A path of HTTP as it is sent, or the name of a tool."""
    body: Any = None
    """JSON, or bytes."""
    headers: dict[str, str] = field(default_factory=dict)


def picture(color: str, kind: str = "PNG") -> str:
    """Return a picture in base64."""
    file = BytesIO()
    Image.new("RGB", (40, 30), color).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder, by path."""
    files = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}


def make_journal(folder: Path) -> Path:
    """Write a journal with a post of each state, and build it; return the content."""
    content = folder / "content"
    for path, text in CONTENT.items():
        (content / path).parent.mkdir(parents=True, exist_ok=True)
        (content / path).write_text(text, encoding="utf-8")
    (content / "images").mkdir()
    (content / "images/cover.png").write_bytes(base64.b64decode(picture("red")))
    run_build(content, folder / "build", AFTER_ALL)
    return content


def save(name: str, markdown: str, slug: str | None = None, **headers: str) -> list[Attack]:
    """Return the attack of a text over HTTP, and by a tool."""
    body = {"markdown": markdown, **({} if slug is None else {"slug": slug})}
    named = {"If-Match" if each == "version" else each: value for each, value in headers.items()}
    http = Attack(f"save {name}", "POST", SOURCES, body, named)
    return [http, Attack(f"tool {name}", "", "save_draft", {**body, **headers})]


def head(*lines: str, body: str = "Taken over.") -> str:
    """Return a text whose head has these lines."""
    return "\n".join(["---", "title: Taken", *lines, "---", "", body, ""])


_SLUGS = (
    "the-first",
    "the-First",
    "THE-FIRST",
    "The-First",
    "\uff54\uff48\uff45-\uff46\uff49rst",
    "the\u2010first",
    "the-\ufb01rst",
    "the\xadfirst",
    "the-first\u200b",
    "the-first.",
    "the-first~",
    "./the-first",
    "../posts/the-first",
    "posts/the-first",
    "the-first.md",
    "the-first/",
    "/the-first",
    "the-first%00",
    "the-first\x00",
    "the-first\\",
    ".the-first",
    "the-first/index.html",
    "journal/the-first",
    "the-first#x",
    "the-first?x",
    "the-former",
    "THE-FORMER",
    "café",
    "cafe\u0301",
    "CAFÉ",
    "straße",
    "strasse",
    "STRASSE",
    "STRAẞE",
    "hid",
    "later",
    "LATER",
    "about",
    "begun",
    "index",
    "feed.xml",
    "sitemap.xml",
    "robots.txt",
    "404",
    ".git",
    "..",
    "",
    "~",
    "CON",
    "images/cover.png",
    "var/drafts",
    "\u212aaf\xe9",
    "the-f\u0131rst",
    "the-f\u0130rst",
    "\u0442he-first",
    "../../build/current/site/index.html",
)
_STATES = {
    "published": ("status: published",),
    "capitals": ("Status: published",),
    "shouted": ("STATUS: PUBLISHED",),
    "space before the colon": ("status : published",),
    "quoted key": ('"status": published',),
    "escaped key": ('"st\\u0061tus": published',),
    "tagged key": ("!!str status: published",),
    "explicit key": ("? status", ": published"),
    "folded value": ("status: >-", "  published"),
    "twice, draft first": ("status: draft", "status: published"),
    "twice, draft last": ("status: published", "status: draft"),
    "three times": ("status: draft", "Status: published", "STATUS: hidden"),
    "hidden": ("status: hidden",),
    "scheduled": ("status: scheduled", "date: 2026-12-01"),
    "draft no": ("draft: no",),
    "draft false": ("draft: false",),
    "published yes": ("published: true",),
    "draft and no": ("status: draft", "draft: no"),
    "anchor": ("x: &a published", "status: *a"),
    "merge": ("x: &a {status: published}", "<<: *a"),
    "reST": (":status: published",),
    "past date": ("date: 2020-01-01",),
    "future date": ("date: 2089-01-01", "status: published"),
    "a second document": ("status: draft", "---", "status: published"),
    "an end mark": ("status: draft", "...", "status: published"),
    "indented": ("  status: published",),
    "a comment": ("status: published # status: draft",),
    "carriage returns": ("status: draft\rstatus: published",),
    "line separators": ("status: draft\u2028status: published\u2029\x85status: published",),
}
ADDRESS_KEYS = (
    "save_as: journal/the-first/index.html",
    "url: journal/the-first/index.html",
    "template: journal/the-first/index.html",
    "Save_As: journal/the-first/index.html",
    "SAVE-AS: journal/the-first/index.html",
    '"url": journal/the-first/index.html',
    "? url\n: journal/the-first/",
)
"""Keys by which plugins of Pelican choose an address; each is refused."""
_ADDRESSES = (
    "permalink: journal/the-first/index.html",
    "'permalink': journal/the-first/",
    "!!str url: journal/the-first/",
    "path: journal/the-first/",
    "link: journal/the-first/",
    '"u\\u0072l": journal/the-first/',
    "x: &a {url: journal/the-first/}\n<<: *a",
    "aliases: [/journal/the-first/]",
    "aliases: [the-first, about]",
    "redirect_from: [/journal/the-first/, /about/, /]",
    "slug: the-first",
    "Slug: the-first",
    "SLUG: THE-FIRST",
    '"slug": the-first',
    "slug: taken\nslug: the-first",
    "slug: the-first\nslug: taken",
    "slug: ../posts/the-first",
    "translation_of: the-first",
    "lang: de\ntranslation: true\nslug: the-first",
    "category: ../../pages",
)
_HEADS = {
    "Pelican": "Title: Taken\nSlug: the-first\nStatus: published\n\nTaken.\n",
    "Pelican, url": "Title: Taken\nStatus: published\nSave_As: index.html\nURL: /\n\nTaken.\n",
    "Pelican in capitals": "TITLE: Taken\nSLUG: the-first\nSTATUS: published\n\nTaken.\n",
    "Pelican over lines": "Title: Taken\nStatus: draft\n    published\nSlug: the-first\n\nTaken.\n",
    "in braces": "---\n{title: Taken, slug: the-first, status: published}\n---\n\nTaken.\n",
    "JSON": '{"title": "Taken", "slug": "the-first", "status": "published"}\n\nTaken.\n',
    "TOML": '+++\ntitle = "Taken"\nslug = "the-first"\ndraft = false\n+++\n\nTaken.\n',
    "a mark of byte order": "\ufeff---\ntitle: Taken\nslug: the-first\n---\n\nTaken.\n",
    "empty lines before": "\n\n---\ntitle: Taken\nslug: the-first\n---\n\nTaken.\n",
    "CR LF": "---\r\ntitle: Taken\r\nslug: the-first\r\nstatus: published\r\n---\r\n\r\nTaken.\r\n",
    "CR": "---\rtitle: Taken\rslug: the-first\rstatus: published\r---\r\rTaken.\r",
    "four dashes": "----\ntitle: Taken\nslug: the-first\nstatus: published\n----\n\nTaken.\n",
    "a directive": "%YAML 1.1\n---\ntitle: Taken\nstatus: published\n---\n\nTaken.\n",
    "no head": "# The first\n\nTaken.\n",
    "a tag of YAML": "---\ntitle: !!python/object/apply:os.system [id]\nslug: x\n---\n\nTaken.\n",
    "the first itself": FIRST.replace("It began", "It ended"),
}
_VERSIONS = ("*", "{first}", 'W/"{first}"', '"{first}", "{begun}"', "{first_upper}", "", "{begun}")
_TARGETS = (
    ("POST", "/the-first/withdraw"),
    ("GET", "/the-first/withdraw"),
    ("PUT", "/the-first/withdraw"),
    ("DELETE", "/the-first/withdraw"),
    ("PATCH", "/the-first/withdraw"),
    ("PUT", "/the-first"),
    ("PATCH", "/the-first"),
    ("DELETE", "/the-first"),
    ("POST", "/the-first"),
    ("POST", "/begun/publish"),
    ("POST", "/begun/Publish"),
    ("POST", "/begun/PUBLISH"),
    ("POST", "/begun/publish/"),
    ("PROPFIND", "/begun/publish"),
    ("post", "/begun/publish"),
    ("POST", "/begun//publish"),
    ("POST", "//begun/publish"),
    ("POST", "/begun/%70ublish"),
    ("POST", "/begun%2Fpublish"),
    ("POST", "/begun/publish%20"),
    ("POST", "/begun/publish;x"),
    ("POST", "/begun/publish?scope=posts:publish"),
    ("POST", "/x/../begun/publish"),
    ("POST", "/./begun/publish"),
    ("POST", "/pictures/publish"),
    ("POST", "/check/withdraw"),
    ("POST", "/begun/bin"),
    ("POST", "/begun/share"),
    ("POST", "/begun/preview"),
)
_ELSEWHERE = (
    ("POST", "/api/public/v1/posts"),
    ("PUT", "/api/public/v1/posts/the-first"),
    ("PATCH", "/api/public/v1/posts/the-first"),
    ("DELETE", "/api/public/v1/posts/the-first"),
    ("POST", "/api/public/v2/sources/begun/publish"),
    ("POST", "/API/PUBLIC/V1/sources/begun/publish"),
    ("POST", "/micropub"),
    ("POST", "/desk/posts/begun/publish/"),
    ("POST", "/desk/posts/the-first/withdraw/"),
    ("POST", "/desk/write/"),
    ("PUT", "/journal/the-first/"),
    ("DELETE", "/journal/the-first/"),
    ("PUT", "/images/cover.png"),
    ("POST", "/api/public/v1/admin/audit_log"),
)
_PICTURES = (
    "cover.png",
    "COVER.PNG",
    "images/cover.png",
    "../images/cover.png",
    "/images/cover.png",
    "cover.png\x00.png",
    "cover",
    "cover.",
    "./cover.png",
    "..",
    "cover.png/",
    "cover.jpg",
    "\uff43over.png",
    "co\u200bver.png",
    "index.html",
    "..\\images\\cover.png",
    "file:cover.png",
)
_TOOLS = (
    "publish_post",
    "withdraw_post",
    "Publish_Post",
    "PUBLISH_POST",
    "publish-post",
    "publish",
    "bin_post",
    "share_post",
    "sources/publish",
    "publish_post\u200b",
    "operation:publish_post",
    "desk.publish",
)
_EXTRA = (
    {"may_publish": True},
    {"operation": "publish"},
    {"author": ""},
    {"at": "2026-01-01T00:00:00Z"},
    {"status": "published"},
    {"path": "posts/the-first.md"},
    {"base": "{first}"},
    {"state": "published", "is_changed": True},
)


def list_attacks() -> list[Attack]:
    """Return all attacks; `{first}` and `{begun}` stand for the versions of these sources."""
    publish = {"If-Match": '"{begun}"'}
    attacks = [
        each
        for slug in _SLUGS
        for versions in ({}, {"version": "{first}"})
        for each in save(f"over {slug!r} {versions}", head("status: draft"), slug, **versions)
    ]
    for name, lines in _STATES.items():
        attacks += save(name, head("slug: begun", *lines), "begun", version="{begun}")
        attacks += save(f"new, {name}", head(*lines), f"new-{len(attacks)}")
        attacks += save(f"the first, {name}", head("slug: the-first", *lines), version="{first}")
    for line in (*ADDRESS_KEYS, *_ADDRESSES):
        attacks += save(line, head(*line.split("\n")), f"elsewhere-{len(attacks)}")
        attacks += save(f"{line}, no slug", head(*line.split("\n")))
    for name, text in _HEADS.items():
        attacks += save(name, text)
        attacks += save(f"{name}, begun", text, "begun")
        attacks += save(f"{name}, the first", text, "the-first", version="{first}")
    for version in _VERSIONS:
        attacks += save(f"version {version}", head("slug: the-first"), version=version)
    for method, path in _TARGETS:
        for body in ({}, {"at": "2089-01-01T00:00:00Z"}):
            name = f"{method} {path} {body}"
            attacks.append(Attack(name, method, f"{SOURCES}{path}", body, publish))
    for method, path in _ELSEWHERE:
        attacks.append(Attack(f"{method} {path}", method, path, {"slug": "begun"}, publish))
    for name in ("X-HTTP-Method-Override", "X-Original-URL", "X-Scope", "X-Forwarded-Method"):
        more = {**publish, name: f"{SOURCES}/begun/publish"}
        attacks.append(Attack(name, "POST", f"{SOURCES}/begun/publish", {}, more))
    for name in _PICTURES:
        named = {"name": name, "data": picture("blue", "JPEG" if name[-3:] == "jpg" else "PNG")}
        attacks.append(Attack(f"picture {name!r}", "POST", f"{SOURCES}/pictures", named))
        attacks.append(Attack(f"picture {name!r} by tool", "", "add_picture", named))
    for name in _TOOLS:
        attacks.append(Attack(f"tool {name}", "", name, {"slug": "begun", "version": "{begun}"}))
    for extra in _EXTRA:
        sent = {"markdown": head("slug: begun"), "slug": "begun", **extra}
        attacks.append(Attack(f"extra {extra}", "POST", SOURCES, sent, publish))
        attacks.append(Attack(f"extra {extra} by tool", "", "save_draft", sent))
    twice = b'{"markdown": "# A\\n", "slug": "new-twice", "slug": "the-first"}'
    attacks.append(Attack("a member twice", "POST", SOURCES, twice))
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "publish_post"}}
    ]
    attacks.append(Attack("a batch", "POST", MCP, batch))
    return attacks
