"""Walks through the built site: pages, files, codings, ranges, conditions, redirects, no pages."""

from typing import Final

from tests.replay.walk import Walk, walk

PAGES: Final = (
    "/",
    "/journal/",
    "/journal/first-edge/",
    "/journal/sewing-and-folding/",
    "/journal/marbled-paper/",
    "/tags/",
    "/tags/bindings/",
    "/tags/grosse/",
    "/archive/",
    "/about/",
    "/contact/",
    "/contact/thanks/",
    "/journal/sheet-05/",
    "/tags/tools/",
    "/contact/?about=first-edge",
    "/contact/?about=a-draft",
)
FILES: Final = (
    "/index.md",
    "/journal/index.md",
    "/journal/first-edge/index.md",
    "/about/index.md",
    "/feed.xml",
    "/feed.json",
    "/tags/paper/feed.xml",
    "/tags/paper/feed.json",
    "/auth.md",
    "/sitemap.xml",
    "/llms.txt",
    "/llms-full.txt",
    "/robots.txt",
    "/card.png",
    "/cards/first-edge.png",
    "/.well-known/security.txt",
    "/404.html",
    "/404.md",
    "/large.txt",
    "/.well-known/agent-skills/index.json",
    "/.well-known/agent-skills/read-the-journal/SKILL.md",
)
ASSETS: Final = ("style.*.css", "search.*.js", "icon.*.svg", "fonts/serif-roman.*.woff2")
MISSING: Final = (
    "/none/",
    "/journal/none/",
    "/journal/first-edg/",
    "/tags/none/",
    "/none.css",
    "/a/b/c",
    "/journal/a-draft/",
    "/journal/not-yet/",
    "/tags/secret-tag/",
    "/posts.json",
    "/../posts.json",
    "/%2e%2e/posts.json",
    "/templates/shell.html",
    "/.cache/",
    "/%00",
    "/%ff",
    "/journal//",
    "/JOURNAL/",
    "/favicon.ico",
    "/.env",
    "/index.html.gz",
    "/wp-login.php",
    "/none?q=1",
)
ELSEWHERE: Final = (
    "/journal",
    "/journal/first-edge",
    "/journal/first-edge/index.html",
    "/index.html",
    "/about",
    "/journal/oldest-edge/",
    "/journal/oldest-edge",
    "/2019/edge.html",
    "/2019/edge.md",
    "/journal/oldest-edge/?a=1&b=%20",
    "/journal/oldest-edge/index.md",
    "/search/",
    "/contact",
    "/docs",
    "/docs/index.html",
    "/docs/posts",
    "/tags/bindings",
    "/journal?a=1",
    "/search/?q=a",
)
DOCS: Final = (
    "",
    "posts/",
    "leads/",
    "analyze/",
    "admin/",
    "oauth/",
    "mcp/",
    "utility/",
    "try/",
    "index.md",
    "posts/index.md",
    "mcp/index.md",
    "none/",
    "try/none.js",
)
CODINGS: Final = (
    "gzip",
    "br",
    "br, gzip",
    "gzip;q=1, br;q=0.5",
    "identity",
    "identity;q=0",
    "*",
    "*;q=0",
    "gzip;q=0, br;q=0",
    "x-gzip",
    "zstd",
    "deflate, gzip;q=0.2, *;q=0.1",
    "",
    "br;q=2",
    "GZIP",
)
WISHES: Final = (
    "text/markdown",
    "text/html",
    "*/*",
    "text/*",
    "text/markdown;q=0.5, text/html;q=0.4",
    "text/markdown;q=0.4, text/html;q=0.5",
    "text/markdown, text/html",
    "text/markdown;q=0",
    "text/html, text/markdown;q=1.0",
    "text/markdown;variant=gfm",
    "text/markdown;variant=x",
    "text/markdown;charset=utf-8",
    "application/json",
    "TEXT/MARKDOWN",
    "text/markdown;q=x",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    'a/b;c="d,e", text/markdown',
)
RANGES: Final = (
    "bytes=0-9",
    "bytes=5-5",
    "bytes=-5",
    "bytes=10-",
    "bytes=0-99999999",
    "bytes=99999999-",
    "bytes=0-1,3-4",
    "bytes=5-2",
    "bytes=-0",
    "bytes=",
    "bytes=a-b",
    "items=0-1",
    "bytes= 0-1",
    "Bytes=0-1",
    "bytes=0-0",
    "bytes=00-01",
    "bytes=99999999999999999999999-",
)


@walk("site-pages", fresh=False)
def pages(w: Walk) -> None:
    """Ask for each page plainly, with codings, as Markdown, by HEAD, and again if changed."""
    for page in PAGES:
        answer = w.get(page)
        w.get(page, headers={"If-None-Match": answer.header("ETag")})
        w.ask("HEAD", page)
        w.get(page, headers={"Accept-Encoding": "gzip, br"})
        markdown = w.get(page, headers={"Accept": "text/markdown"})
        tag = markdown.header("ETag")
        w.get(page, headers={"Accept": "text/markdown", "If-None-Match": tag})
        w.ask("HEAD", page, headers={"Accept": "text/markdown", "Accept-Encoding": "gzip"})


@walk("site-files", fresh=False)
def files(w: Walk) -> None:
    """Ask for each file plainly, by HEAD, compressed, in part, and again if changed."""
    assets = [
        f"/{path.relative_to(w.stage.site)}"
        for asset in ASSETS
        for path in sorted((w.stage.site / "theme").glob(asset))
    ]
    for file in (*FILES, *assets):
        answer = w.get(file)
        tag = answer.header("ETag")
        w.get(file, headers={"If-None-Match": tag})
        w.ask("HEAD", file)
        coded = w.get(file, headers={"Accept-Encoding": "br, gzip"})
        w.get(file, headers={"Accept-Encoding": "br", "If-None-Match": coded.header("ETag")})
        w.get(file, headers={"Range": "bytes=0-9"})
        w.get(file, headers={"Range": "bytes=0-9", "If-Range": tag})
        w.ask("OPTIONS", file)
        w.get(file, headers={"Origin": "https://other.example"})


@walk("site-negotiation", fresh=False)
def negotiation(w: Walk) -> None:
    """Ask for a page with every form of Accept and Accept-Encoding."""
    for path in ("/journal/first-edge/", "/none/", "/feed.xml", "/docs/posts/", "/search?q=edge"):
        for wish in WISHES:
            w.get(path, headers={"Accept": wish})
    for coding in CODINGS:
        w.get("/journal/first-edge/", headers={"Accept-Encoding": coding})
        w.get("/api/public/v1/openapi.json", headers={"Accept-Encoding": coding})
    w.get("/", headers=[("Accept", "text/html"), ("Accept", "text/markdown")])
    w.get("/", headers=[("Accept-Encoding", "br;q=0"), ("Accept-Encoding", "gzip")])


@walk("site-conditions", fresh=False)
def conditions(w: Walk) -> None:
    """Ask for parts of files, and on conditions."""
    for file in ("/robots.txt", "/journal/first-edge/", "/large.txt"):
        tag = w.get(file).header("ETag")
        bare = w.know("bare etag", tag.strip('"'))
        for span in RANGES:
            w.get(file, headers={"Range": span})
        for condition in ('"other"', tag, f"W/{tag}", f'"a", {tag}', "*", "", bare, '"a'):
            w.get(file, headers={"If-None-Match": condition})
            w.get(file, headers={"If-Range": condition, "Range": "bytes=0-3"})
        w.get(file, headers={"If-Modified-Since": "Thu, 01 Jan 2099 00:00:00 GMT"})
        w.get(file, headers={"If-Match": '"other"'})
        w.ask("HEAD", file, headers={"Range": "bytes=0-3"})
        w.get(file, headers=[("Range", "bytes=0-3"), ("Range", "bytes=1-2")])
        w.get(file, headers={"Range": "bytes=0-3", "Accept-Encoding": "gzip"})
        w.get(file, headers={"Range": "bytes=0-3", "If-None-Match": tag})


@walk("site-elsewhere", fresh=False)
def elsewhere(w: Walk) -> None:
    """Ask for what is not there, or is there under another address."""
    for path in (*MISSING, *ELSEWHERE):
        w.get(path)
        w.get(path, headers={"Accept": "text/markdown"})
        w.ask("HEAD", path)
    for path in (
        "/api",
        "/api/",
        "/api/none",
        "/api/public",
        "/api/public/v1/none",
        "/api/public/v2/",
    ):
        w.get(path)
        w.post(path, {})
        w.get(path, headers={"Accept": "text/html"})
        w.ask("OPTIONS", path)


@walk("site-methods", fresh=False)
def methods(w: Walk) -> None:
    """Use each method on pages, files, redirects and nothing."""
    for path in (
        "/",
        "/journal/first-edge/",
        "/robots.txt",
        "/none/",
        "/journal",
        "/search",
        "/docs/",
    ):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "PROPFIND"):
            w.ask(method, path)
    for path in ("/contact/", "/contact/access/", "/contact", "/feed.xml", "/unsubscribe"):
        for method in ("PUT", "OPTIONS", "HEAD", "DELETE"):
            w.ask(method, path, headers={"Origin": "https://other.example"})


@walk("site-docs", fresh=False)
def docs(w: Walk) -> None:
    """Ask for the pages of the reference."""
    for page in DOCS:
        tag = w.get(f"/docs/{page}").header("ETag")
        w.get(f"/docs/{page}", headers={"If-None-Match": tag})
        w.get(f"/docs/{page}", headers={"Accept": "text/markdown"})
        w.get(f"/docs/{page}", headers={"Accept-Encoding": "gzip"})
        w.ask("HEAD", f"/docs/{page}")
