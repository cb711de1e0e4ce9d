"""Walks of agents: the MCP endpoint in the revisions with a handshake and in the one without."""

import json
from typing import Any, Final

from tests.replay.walk import JSON, Walk, walk

PATH: Final = "/api/public/mcp"
MODERN: Final = "2026-07-28"
EARLIER: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NAMES: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
LEAD: Final = {"name": "Ann", "email": "ann@example.org", "budget_tier": "x", "message": "hello"}
SKILL: Final = "skill://connect-over-mcp/SKILL.md"
FIRST: Final = "http://journal.test/journal/first-edge/"
CALLS: Final[tuple[tuple[str, Any], ...]] = (
    ("search", {"query": "sheet"}),
    ("search", {"query": "marbeld"}),
    ("search", {}),
    ("search", {"query": ["x"]}),
    ("search", {"query": "edge", "page": 2}),
    ("search", {"query": ""}),
    ("fetch", {"id": "first-edge"}),
    ("fetch", {"id": "none"}),
    ("fetch", {"id": "oldest-edge"}),
    ("fetch", {"id": None}),
    ("list_posts", {}),
    ("list_posts", {"limit": 2, "tag": "tools"}),
    ("list_posts", {"limit": 0}),
    ("list_posts", {"limit": 1.5}),
    ("list_posts", {"limit": "1"}),
    ("list_posts", {"q": "sheet", "limit": 1.0}),
    ("list_posts", {"cursor": "here"}),
    ("list_posts", {"since": "2024-04-05"}),
    ("list_posts", {"since": "yesterday"}),
    ("get_post", {"slug": "marbled-paper"}),
    ("get_post", {"slug": {"a": 1}}),
    ("get_post", {}),
    ("analyze", {"text": "Binders painted on the fore-edge."}),
    ("analyze", {"text": "", "html": ""}),
    ("analyze", {"url": FIRST, "keywords": 1}),
    ("create_lead", LEAD),
    ("create_lead", {"name": "A"}),
    ("create_lead", {**LEAD, "idempotency_key": "k"}),
    ("create_lead", {**LEAD, "email": "ann"}),
    ("create_lead", {**LEAD, "idempotency_key": "k"}),
    ("create_lead", {**LEAD, "_gotcha": "x"}),
    ("create_lead", {**LEAD, "name": "Bo", "idempotency_key": "k"}),
    ("list_leads", {"limit": 1}),
    ("list_leads", {}),
    ("list_leads", {"limit": 201}),
    ("query_table", {"table": "leads"}),
    ("query_table", {}),
    ("query_table", {"table": "credentials"}),
    ("query_table", {"table": 5}),
    (
        "query_table",
        {"table": "leads", "select": "name", "filters": {"name": "eq.Ann"}, "limit": 1},
    ),
    (
        "query_table",
        {"table": "leads", "filters": {"name": ["neq.A", "like.A*"]}, "order": "name.desc"},
    ),
    ("query_table", {"table": "leads", "filters": {"secret": "eq.1"}}),
    ("query_table", {"table": "leads", "filters": "id=eq.1"}),
    ("query_table", {"table": "suppressed_emails", "offset": 1}),
    ("read_stats", {"since": "yesterday"}),  # a sum has what the walks before have opened
    ("read_stats", {"limit": 0}),
    ("none", {}),
    ("search", []),
    ("search", "x"),
    ("query_table", {"table": "leads", "limit": 1001}),
)
REQUESTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("ping", {}),
    ("server/discover", {}),
    ("tools/destroy", {}),
    ("skills/list", {}),
    ("skills/get", {"uri": SKILL}),
    ("resources/read", {"uri": SKILL}),
    ("skills/get", {"uri": "skill://none/SKILL.md"}),
    ("skills/get", {}),
    ("resources/read", {"uri": "skill://none/SKILL.md"}),
    ("tools/list", {"cursor": "here"}),
    ("resources/list", {"cursor": "here"}),
    ("prompts/list", {"cursor": "x"}),
    ("tools/list", {"cursor": 5}),
    ("tools/call", {}),
    ("tools/call", {"name": None}),
    ("resources/read", {}),
    ("logging/setLevel", {"level": "info"}),
    ("resources/subscribe", {"uri": FIRST}),
    *(
        ("resources/read", {"uri": uri})
        for uri in (
            FIRST,
            "http://journal.test/tags/bindings/",
            "http://journal.test/journal/none/",
            "http://journal.test/journal/oldest-edge/",
            "http://journal.test/journal/a-draft/",
            "http://journal.test/journal/../about/",
            "http://elsewhere.test/",
            "file:///x",
            "",
            "http://journal.test/journal/first-edge",
            "http://journal.test/about/",
            FIRST + "#top",
        )
    ),
    *(
        ("prompts/get", given)
        for given in (
            {"name": "summarize_post", "arguments": {"slug": "first-edge"}},
            {"name": "none"},
            {},
            {"name": "summarize_post", "arguments": {}},
            {"name": "digest", "arguments": {}},
            {"name": "summarize_post", "arguments": {"slug": "none"}},
            {"name": "digest"},
            {"name": "digest", "arguments": {"tag": "Bindings"}},
            {"name": "digest", "arguments": {"since": "2024-03-01"}},
            {"name": "digest", "arguments": {"since": "x"}},
            {"name": "digest", "arguments": "x"},
            {"name": "digest", "arguments": {"tag": 1}},
            {"name": "digest", "arguments": {"x": "y"}},
        )
    ),
    *(
        ("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})
        for ref, name, value in (
            ({"type": "ref/prompt", "name": "summarize_post"}, "slug", ""),
            ({"type": "ref/prompt", "name": "summarize_post"}, "slug", "FI"),
            ({"type": "ref/prompt", "name": "digest"}, "tag", "b"),
            ({"type": "ref/prompt", "name": "digest"}, "since", "20"),
            ({"type": "ref/resource", "uri": "http://journal.test/journal/{slug}/"}, "slug", "s"),
            ({"type": "ref/resource", "uri": "http://journal.test/tags/{tag}/"}, "tag", "p"),
            ({"type": "ref/prompt", "name": "none"}, "slug", ""),
            ({"type": "ref/none"}, "slug", ""),
        )
    ),
)
PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
BROKEN: Final[tuple[Any, ...]] = (
    [],
    [PING, PING],
    None,
    "x",
    {},
    {**PING, "id": None},
    {**PING, "id": True},
    {**PING, "id": 1.5},
    {**PING, "id": "x" * 257},
    {**PING, "id": 2**63},
    {**PING, "id": {}},
    {**PING, "id": "é"},
    {**PING, "id": 0},
    {**PING, "id": -5.0},
    {**PING, "jsonrpc": "1.0"},
    {**PING, "method": 5},
    {**PING, "params": []},
    {"jsonrpc": "2.0", "id": 1},
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "result": {}},
    {"jsonrpc": "2.0", "method": "notifications/x", "params": 5},
)


def envelope(version: str = MODERN) -> dict[str, Any]:
    """Return what each request of the later era says of itself."""
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "replay", "version": "1"},
    }


def say(w: Walk, version: str, method: str, params: dict[str, Any], **more: Any) -> None:
    """Send one request in a revision."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    given = dict(params)
    if version == MODERN:
        given["_meta"] = {**envelope(), **given.get("_meta", {})}
        headers["Mcp-Method"] = method
        name = given.get(NAMES.get(method, ""))
        if isinstance(name, str) and name:
            headers["Mcp-Name"] = name
    headers.update(more.pop("headers", {}))
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    w.post(PATH, message, headers=headers, bearer=more.pop("bearer", "token"), **more)


@walk("mcp-later-era")
def later_era(w: Walk) -> None:
    """Call every tool, and send every request, without a handshake."""
    for method, params in REQUESTS:
        say(w, MODERN, method, params)
    for tool, arguments in CALLS:
        say(w, MODERN, "tools/call", {"name": tool, "arguments": arguments})


@walk("mcp-earlier-era")
def earlier_era(w: Walk) -> None:
    """Do the same in the newest revision with a handshake."""
    for method, params in REQUESTS:
        say(w, EARLIER[-1], method, params)
    for tool, arguments in CALLS:
        say(w, EARLIER[-1], "tools/call", {"name": tool, "arguments": arguments})


@walk("mcp-revisions", fresh=False)
def revisions(w: Walk) -> None:
    """Shake hands in every revision, and send a little in each."""
    for version in (*EARLIER, MODERN, "1999-01-01", "2027-01-01", "x"):
        params = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "replay", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        w.post(PATH, message, bearer="token")
        w.post(PATH, message, bearer="token", headers={"MCP-Protocol-Version": version})
        w.post(
            PATH,
            {**PING, "method": "ping"},
            bearer="token",
            headers={"MCP-Protocol-Version": version},
        )
        say(w, version, "tools/list", {})
        say(w, version, "tools/call", {"name": "fetch", "arguments": {"id": "first-edge"}})
    for meta, headers in (
        (envelope("2027-01-01"), {}),
        ({}, {}),
        (envelope(), {"Mcp-Method": "prompts/list"}),
        (envelope(), {"Mcp-Method": ""}),
        (envelope(), {"MCP-Protocol-Version": "2027-01-01"}),
        ({"io.modelcontextprotocol/protocolVersion": 5}, {}),
        ({"io.modelcontextprotocol/clientInfo": 5}, {}),
    ):
        say(w, MODERN, "tools/list", {"_meta": meta}, headers=headers)
    call = {"name": "fetch", "arguments": {"id": "first-edge"}}
    say(w, MODERN, "tools/call", call, headers={"Mcp-Name": "search"})
    w.post(
        PATH,
        {**PING, "params": {"_meta": envelope()}},
        bearer="token",
        headers={"MCP-Protocol-Version": MODERN},
    )


@walk("mcp-messages", fresh=False)
def messages(w: Walk) -> None:
    """Send what is no message, batches, and other methods of HTTP."""
    for version in (EARLIER[1], MODERN, ""):
        headers = {"MCP-Protocol-Version": version} if version else {}
        for message in BROKEN:
            w.post(PATH, message, bearer="token", headers=headers)
        for raw in (b"", b"{", b"\xff", b'{"a": NaN}', b"[" * 5000):
            w.post(PATH, body=raw, bearer="token", headers={**headers, "Content-Type": JSON})
    call = {"name": "fetch", "arguments": {"id": "first-edge"}}
    notification = {"jsonrpc": "2.0", "method": "notifications/x"}
    batches: tuple[Any, ...] = (
        [PING, notification, {**PING, "id": "b", "method": "tools/call", "params": call}, 5],
        [notification, notification],
        [{**PING, "method": "initialize"}],
        [PING] * 51,
        [{**PING, "method": "x"}],
    )
    for batch in batches:
        w.post(PATH, batch, bearer="token", headers={"MCP-Protocol-Version": EARLIER[1]})
        w.post(PATH, batch, bearer="token")
    for accept in ("text/html", "text/event-stream", "application/json;q=0", "*/*", "", JSON):
        w.post(PATH, PING, bearer="token", headers={"Accept": accept})
    for origin in ("http://journal.test", "https://other.example", "null", "http://localhost:1"):
        w.post(PATH, PING, bearer="token", headers={"Origin": origin})
        w.ask("OPTIONS", PATH, headers={"Origin": origin})
    for method in ("GET", "DELETE", "HEAD", "PUT"):
        w.ask(method, PATH, bearer="token", headers={"Accept": "text/event-stream"})
        w.ask(method, PATH)
    w.post(PATH, PING, bearer="token", headers={"Mcp-Session-Id": "x", "Last-Event-ID": "1"})
    w.post(PATH, PING, bearer="token", headers={"Accept-Encoding": "gzip"})


@walk("mcp-scopes", fresh=False)
def scopes(w: Walk) -> None:
    """List and call with tokens that may do little, or nothing here."""
    for bearer in ("reader token", "bare token", "one table token", "all", "revoked", "fe_mt_x"):
        for version in (EARLIER[-1], MODERN):
            for method in ("tools/list", "resources/list", "prompts/list"):
                say(w, version, method, {}, bearer=bearer)
            if version != MODERN:
                continue
            for tool, arguments in (CALLS[0], CALLS[6], CALLS[10], ("list_leads", {})):
                say(w, version, "tools/call", {"name": tool, "arguments": arguments}, bearer=bearer)
            given = {"name": "query_table", "arguments": {"table": "suppressed_emails"}}
            say(w, version, "tools/call", given, bearer=bearer)
            given = {"name": "query_table", "arguments": {"table": "leads"}}
            say(w, version, "tools/call", given, bearer=bearer)
            say(w, version, "resources/read", {"uri": FIRST}, bearer=bearer)


@walk("mcp-streams", fresh=False)
def streams(w: Walk) -> None:
    """Open subscriptions, and ask for progress."""
    for wanted in ({"resourcesListChanged": True}, {"resourceSubscriptions": [FIRST]}, {}):
        say(w, MODERN, "subscriptions/listen", {"notifications": wanted}, events=1)
    say(w, MODERN, "subscriptions/listen", {"notifications": {}}, headers={"Accept": JSON})
    say(w, EARLIER[-1], "subscriptions/listen", {"notifications": {}})
    call = {"name": "fetch", "arguments": {"id": "first-edge"}, "_meta": {"progressToken": 7}}
    say(w, MODERN, "tools/call", call)
    say(w, EARLIER[-1], "tools/call", call)
    call = {"name": "analyze", "arguments": {"text": "x"}, "_meta": {"progressToken": "p"}}
    say(w, MODERN, "tools/call", json.loads(json.dumps(call)))
