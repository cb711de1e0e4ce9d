"""Walks up to the rate limits: the default ones, and tight ones by which each is met."""

from typing import Final

from tests.replay.walk import Walk, walk

V1: Final = "/api/public/v1"
LEAD: Final = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}


def come_from(address: str) -> dict[str, str]:
    """Return the header by which a proxy says whose request it is."""
    return {"X-Forwarded-For": address}


@walk("limits-default", kind="limited")
def default(w: Walk) -> None:
    """Send a little more than the default limits allow, from addresses behind a proxy."""
    for number in range(7):
        w.post(f"{V1}/leads", {**LEAD, "message": f"{number}"}, headers=come_from("192.0.2.1"))
    w.post(f"{V1}/leads", LEAD, headers=come_from("192.0.2.2"))
    w.post(f"{V1}/leads", LEAD, headers=come_from("192.0.2.1, 192.0.2.3"))
    w.post(f"{V1}/leads", LEAD, headers=come_from("2001:db8::1"))
    w.post(f"{V1}/leads", LEAD, headers=come_from("2001:db8::2"))
    w.post(f"{V1}/leads", LEAD, headers=come_from("nonsense"))
    w.post(f"{V1}/leads", LEAD, headers={"Forwarded": "for=192.0.2.9"})
    w.post(f"{V1}/leads", {}, headers=come_from("192.0.2.1"))
    w.post("/contact/", form=LEAD, headers=come_from("192.0.2.1"))
    w.post("/contact/", form=LEAD, headers={**come_from("192.0.2.1"), "Accept": "application/json"})
    w.post(f"{V1}/leads", LEAD, key="leads")
    for number in range(12):
        w.post(f"{V1}/analyze", {"text": f"Word {number}."}, headers=come_from("192.0.2.4"))
    w.get(f"{V1}/posts/first-edge", key="posts")
    w.get(f"{V1}/posts/first-edge", key="fe_sk_made-up")
    w.get(f"{V1}/search?q=edge")
    w.get("/search?q=edge")
    w.get(f"{V1}/")
    w.get(f"{V1}/readiness")
    w.post("/api/public/oauth/token", form={"grant_type": "client_credentials"})
    w.post("/api/public/access-requests", {"type": "anonymous"})
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    w.post("/api/public/mcp", message, bearer="token")
    call = {"name": "analyze", "arguments": {"text": "x"}}
    w.post("/api/public/mcp", {**message, "method": "tools/call", "params": call}, bearer="token")


@walk("limits-tight", kind="tight")
def tight(w: Walk) -> None:
    """Meet every limit."""
    for _ in range(5):
        w.get(f"{V1}/posts/first-edge", key="posts")
        w.get(f"{V1}/admin/leads?limit=1", key="all")
    for _ in range(4):
        w.get(f"{V1}/posts", key="fe_sk_made-up", headers=come_from("192.0.2.1"))
    w.get(f"{V1}/posts", key="leads", headers=come_from("192.0.2.1"))
    for path in ("/search?q=edge", f"{V1}/search?q=edge"):
        for _ in range(3):
            w.get(path)
            w.get(path, headers={"Accept": "text/markdown"})
    for _ in range(3):
        w.post(f"{V1}/analyze", {"text": "One word."}, headers=come_from("192.0.2.2"))
        w.post("/api/public/oauth/token", form={"grant_type": "client_credentials"})
        w.post("/api/public/oauth/register", {})
        w.get("/api/public/oauth/authorize", headers=come_from("192.0.2.3"))
        w.post("/api/public/access-requests", {"type": "anonymous"}, headers=come_from("192.0.2.4"))
        w.post("/api/public/access-requests/claim", {}, headers=come_from("192.0.2.4"))
        w.post(f"{V1}/leads", LEAD, headers=come_from("192.0.2.5"))
    for _ in range(5):
        w.post(f"{V1}/leads", {}, headers=come_from("192.0.2.6"))
        w.post("/contact/", form={}, headers=come_from("192.0.2.7"))
        w.post("/contact/access/", form={}, headers=come_from("192.0.2.8"))
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    w.post("/api/public/mcp", [message] * 2, bearer="token")
    w.post("/api/public/mcp", [message] * 2, bearer="token")
    w.post("/api/public/mcp", message, bearer="token")
    w.post("/api/public/mcp", message, bearer="token")
    w.get(f"{V1}/")
