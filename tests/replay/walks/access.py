"""Walks that ask for credentials: requests, decisions, claims, and the first use."""

import json
from typing import Any, Final

from tests.replay.walk import Walk, walk

REQUESTS: Final = "/api/public/access-requests"
CLAIM: Final = f"{REQUESTS}/claim"
PLAIN: Final = {"type": "api_key", "name": "Ann", "purpose": "Read posts."}
GOOD: Final[tuple[dict[str, Any], ...]] = (
    PLAIN,
    {"type": "anonymous"},
    {"type": "anonymous", "requested_credential_type": "access_token"},
    {"type": "anonymous", "requested_credential_type": "api_key", "scopes": ["posts:read"]},
    {"type": "both", "name": "Both", "purpose": "Everything.", "email": "ann@example.org"},
    {"type": "access_token", "name": "Agent", "purpose": "MCP.", "scopes": ["mcp", "leads:read"]},
    {**PLAIN, "scopes": ["posts:read", "admin:read"], "more": 1},
    {**PLAIN, "_gotcha": "bot"},
)
FAULTS: Final[tuple[Any, ...]] = (
    {},
    [],
    None,
    {"type": "service_auth"},
    {**PLAIN, "purpose": ""},
    {**PLAIN, "name": 5},
    {**PLAIN, "email": "x"},
    {**PLAIN, "scopes": ["none"]},
    {**PLAIN, "scopes": []},
    {**PLAIN, "scopes": "posts:read"},
    {**PLAIN, "purpose": "x" * 5000},
    {"type": 1},
    {**PLAIN, "name": "a\x00"},
    {"type": "anonymous", "requested_credential_type": "x"},
)
CLAIMS: Final[tuple[Any, ...]] = (
    {},
    {"claim_token": 1},
    {"claim_token": ""},
    [],
    {"claim_token": "fe_cl_none"},
    {"claim_token": "x" * 201},
    {"claim_token": "fe_sk_made-up"},
)
FIELDS: Final = {"name": "Ann", "email": "ann@example.org", "purpose": "Read.", "type": "api_key"}


@walk("access-requests")
def requests(w: Walk) -> None:
    """File requests, let a person decide on them, claim, and use what was handed out."""
    w.get(REQUESTS)
    w.ask("HEAD", REQUESTS)
    for order in GOOD:
        filed = w.post(REQUESTS, order)
        claim = {"claim_token": filed.text("claim_token")}
        w.post(CLAIM, claim)
        w.command("requests", "approve", filed.text("registration_id"))
        handed = w.post(CLAIM, claim)
        w.post(CLAIM, claim)
        if handed.status == 200:
            for credential in handed.json()["credentials"]:
                w.get("/api/public/v1/posts/first-edge", key=credential["credential"])
                message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                w.post("/api/public/mcp", message, bearer=credential["credential"])
    denied = w.post(REQUESTS, PLAIN)
    w.command("requests", "deny", denied.text("registration_id"))
    w.post(CLAIM, {"claim_token": denied.text("claim_token")})
    revoked = w.post(REQUESTS, PLAIN)
    w.command("requests", "approve", revoked.text("registration_id"), "--scopes", "posts:read")
    handed = w.post(CLAIM, {"claim_token": revoked.text("claim_token")})
    w.command("requests", "approve", revoked.text("registration_id"))
    w.command("requests", "list", "--json")
    rows = json.loads(w.run("keys", "list", "--json")[1])
    for row in sorted(rows, key=lambda row: (row["name"], row["type"])):
        if row["id"] not in w.stage.ids.values():
            w.run("keys", "revoke", row["id"])
    w.post(CLAIM, {"claim_token": revoked.text("claim_token")})
    w.get("/api/public/v1/posts/first-edge", key=handed.text("credential"))
    w.audit()


@walk("access-ends")
def ends(w: Walk) -> None:
    """Choose scopes and ends at the terminal, and end keys there."""
    both = {"type": "both", "name": "Both", "purpose": "Read.", "scopes": ["leads:read"]}
    for order, words in (
        (PLAIN, ("--no-expiry",)),
        (both, ("--no-expiry", "--scopes", "posts:read leads:read mcp")),
        ({**PLAIN, "type": "access_token"}, ("--no-expiry",)),
        (PLAIN, ("--expires", "2999-01-31")),
        (PLAIN, ("--expires", "2020-01-31")),
    ):
        filed = w.post(REQUESTS, order)
        w.command("requests", "approve", filed.text("registration_id"), *words)
        w.post(CLAIM, {"claim_token": filed.text("claim_token")})
    for words in (("--expires", "2999-01-31"), ("--expires", "2020-01-31"), ("--no-expiry",)):
        w.command("keys", "expire", w.stage.ids["posts"], *words)
    w.command("keys", "expire", w.stage.ids["revoked"])
    w.command("keys", "expire", "00000000-0000-4000-8000-000000000000")
    w.audit()


@walk("access-faults")
def faults(w: Walk) -> None:
    """Send what is no request and no claim."""
    for order in FAULTS:
        w.post(REQUESTS, order)
    for claim in CLAIMS:
        w.post(CLAIM, claim)
    w.command("requests", "approve", "00000000-0000-4000-8000-000000000000")
    w.command("requests", "list")


@walk("access-form")
def form(w: Walk) -> None:
    """Fill in the form for people."""
    w.post("/contact/access/", form=FIELDS)
    w.post("/contact/access/", form={**FIELDS, "type": "both"})
    w.post("/contact/access/", form={**FIELDS, "type": "access_token", "_gotcha": "x"})
    for fields in (
        {},
        {**FIELDS, "name": ""},
        {**FIELDS, "email": "x"},
        {**FIELDS, "purpose": "x" * 5000},
        {**FIELDS, "type": "x"},
        {**FIELDS, "name": "<b>\"'", "email": "{{ 7 }}"},
    ):
        w.post("/contact/access/", form=fields)
    w.post("/contact/access/", form=FIELDS, headers={"Accept": "application/json"})
    w.get("/contact/access/claim/")
    for token in ("", "fe_cl_none", "<b>", "x" * 300):
        w.post("/contact/access/claim/", form={"claim_token": token})
    filed = w.post(REQUESTS, PLAIN)
    w.post("/contact/access/claim/", form={"claim_token": filed.text("claim_token")})
    w.command("requests", "approve", filed.text("registration_id"))
    w.post("/contact/access/claim/", form={"claim_token": filed.text("claim_token")})
    w.command("requests", "list", "--json")
