"""Walks on edges with other settings: https and closed, on a loopback address, without a build."""

from typing import Final

from tests.replay.walk import Walk, walk

V1: Final = "/api/public/v1"
LEAD: Final = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
EVERYWHERE: Final = (
    "/",
    "/journal/first-edge/",
    "/none/",
    "/search?q=edge",
    "/docs/",
    "/robots.txt",
    "/contact/",
    f"{V1}/",
    f"{V1}/readiness",
    f"{V1}/openapi.json",
    "/api/public/ping",
    "/api/none",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/mcp/server-card.json",
    "/.well-known/ai-catalog.json",
    "/unsubscribe?token=x",
    "/api/public/oauth/authorize",
    "/.well-known/api-catalog",
    f"{V1}/search?q=edge",
    "/llms.txt",
    "/sitemap.xml",
    "/404.html",
    "/docs/try/",
    "/api/public/access-requests",
)


def look_around(w: Walk) -> None:
    """Ask for what every edge has, and a little with credentials."""
    for path in EVERYWHERE:
        w.get(path)
        w.get(path, headers={"Accept": "text/markdown"})
    w.get(f"{V1}/posts", key="posts")
    w.get(f"{V1}/posts/first-edge", key="posts")
    w.get(f"{V1}/posts")
    w.post(f"{V1}/leads", LEAD)
    w.post(f"{V1}/leads", LEAD, key="leads")
    w.post("/contact/", form=LEAD)
    w.post("/contact/", form={"name": ""})
    w.post("/contact/access/", form={})
    w.post(f"{V1}/analyze", {"text": "Binders painted."})
    w.post(f"{V1}/analyze", {"url": "http://journal.test/"})
    w.post("/api/public/hooks/email", {})
    w.get(f"{V1}/admin/leads?limit=1&select=name", key="all")
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}}
    w.post("/api/public/mcp", message, bearer="token")
    call = {"name": "list_posts", "arguments": {}}
    w.post("/api/public/mcp", {**message, "method": "tools/call", "params": call}, bearer="token")


@walk("other-closed", kind="closed")
def closed(w: Walk) -> None:
    """Look around where leads need a credential and nothing is fetched, on https."""
    look_around(w)


@walk("other-empty", kind="empty")
def empty(w: Walk) -> None:
    """Look around where nothing is built."""
    look_around(w)
    w.post(f"/unsubscribe?token={'t' * 32}")


@walk("other-loopback", kind="loopback")
def loopback(w: Walk) -> None:
    """Ask by each name of a host where only loopback names are served."""
    for host in (
        "journal.test",
        "localhost",
        "localhost:8000",
        "127.0.0.1",
        "[::1]:9",
        "LOCALHOST",
        "other.example",
        "localhost.other.example",
        "127.0.0.2",
        "",
        "localhost:x",
        "[::1]",
    ):
        w.host = host
        w.get("/api/public/ping")
        w.get("/journal/first-edge/")
        w.post("/contact/", form={}, headers={"Origin": "http://localhost:8000"})
    w.host = "localhost"
    look_around(w)
