"""Walks through consent: what a person is asked, what they answer, and codes and refresh tokens."""

import base64
import html
import re
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.replay.client import Answer
from tests.replay.stage import CALLBACK, SITE_URL
from tests.replay.walk import Walk, walk

AUTHORIZE: Final = "/api/public/oauth/authorize"
TOKEN: Final = "/api/public/oauth/token"
REGISTER: Final = "/api/public/oauth/register"
REVOKE: Final = "/api/public/oauth/revoke"
POSTS: Final = "/api/public/v1/posts/first-edge"
VERIFIER: Final = "v" * 43
_HIDDEN: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


def query_of(w: Walk, client: str = "app", **changes: str) -> list[tuple[str, str]]:
    """Return the parameters of an authorization request; an empty change leaves one out."""
    challenge = base64.urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=")
    parameters = {
        "response_type": "code",
        "client_id": w.stage.clients.get(client, client),
        "redirect_uri": CALLBACK,
        "code_challenge": challenge.decode(),
        "code_challenge_method": "S256",
        "state": "st",
        **changes,
    }
    return [(name, value) for name, value in parameters.items() if value]


def show(w: Walk, pairs: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Ask for the page; return the hidden members of its form, and the header with its cookie."""
    answer = w.get(f"{AUTHORIZE}?{urlencode(pairs)}")
    found = _HIDDEN.findall(answer.body.decode())
    members = [(html.unescape(name), html.unescape(value)) for name, value in found]
    return members, {"Cookie": answer.header("set-cookie").partition(";")[0]}


def decide(w: Walk, pairs: list[tuple[str, str]], *answers: tuple[str, str]) -> Answer:
    """Ask for the page, and answer what it asks."""
    members, cookie = show(w, pairs)
    return w.post(AUTHORIZE, form=[*members, *answers], headers=cookie)


def allow(w: Walk, pairs: list[tuple[str, str]], *scopes: str, key: str = "all") -> str:
    """Return the code of a person who allows scopes."""
    granted = [("granted", scope) for scope in scopes]
    answers = [("decision", "allow"), ("api_key", w.secret(key)), *granted]
    location = decide(w, pairs, *answers).header("location")
    return dict(parse_qsl(urlsplit(location).query)).get("code", "")


def redeem(w: Walk, given: str, client: str = "app", **changes: str) -> Answer:
    """Exchange a code."""
    form = {
        "grant_type": "authorization_code",
        "client_id": w.stage.clients.get(client, client),
        "code": given,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        **changes,
    }
    return w.post(TOKEN, form={name: value for name, value in form.items() if value})


def refresh(w: Walk, token: str, client: str = "app", **more: str) -> Answer:
    """Exchange a refresh token."""
    form = {"grant_type": "refresh_token", "refresh_token": token, **more}
    return w.post(TOKEN, form={**form, "client_id": w.stage.clients.get(client, client)})


@walk("oauth-code-flow")
def code_flow(w: Walk) -> None:
    """Go from the question to the first use, refresh, and replay what works once."""
    code = allow(w, query_of(w), "posts:read", "mcp")
    tokens = redeem(w, code)
    w.get(POSTS, bearer=tokens.text("access_token"))
    w.get("/api/public/v1/leads", bearer=tokens.text("access_token"))
    second = refresh(w, tokens.text("refresh_token"))
    w.get(POSTS, bearer=second.text("access_token"))
    third = refresh(w, second.text("refresh_token"), scope="posts:read")
    refresh(w, third.text("refresh_token"), scope="admin:write")
    refresh(w, third.text("refresh_token"), resource="https://other.example")
    refresh(w, third.text("refresh_token"), "two")
    refresh(w, second.text("refresh_token"))
    refresh(w, third.text("refresh_token"))
    w.get(POSTS, bearer=third.text("access_token"))
    code = allow(w, query_of(w), "posts:read")
    tokens = redeem(w, code)
    redeem(w, code)
    w.get(POSTS, bearer=tokens.text("access_token"))
    refresh(w, tokens.text("refresh_token"))
    code = allow(w, query_of(w), "posts:read", "leads:read")
    tokens = redeem(w, code)
    client = w.stage.clients["app"]
    w.post(REVOKE, form={"token": tokens.text("refresh_token"), "client_id": client})
    w.get(POSTS, bearer=tokens.text("access_token"))
    code = allow(w, query_of(w), "posts:read", key="posts")
    tokens = redeem(w, code)
    w.command("keys", "revoke", w.stage.ids["posts"])
    w.get(POSTS, bearer=tokens.text("access_token"))
    refresh(w, tokens.text("refresh_token"))
    w.audit()


@walk("oauth-code-errors")
def code_errors(w: Walk) -> None:
    """Redeem codes with what does not belong to them."""
    for changes in (
        {"code_verifier": "w" * 43},
        {"code_verifier": ""},
        {"code_verifier": "short"},
        {"redirect_uri": f"{CALLBACK}/2"},
        {"redirect_uri": ""},
        {"client_id": "nobody"},
        {"client_id": w.stage.clients["two"]},
        {"client_id": ""},
        {"code": "fe_ac_x"},
        {"code": ""},
        {"resource": "https://other.example"},
        {"scope": "posts:read"},
        {"resource": f"{SITE_URL}/api/public/mcp"},
        {"client_secret": "x"},
    ):
        redeem(w, allow(w, query_of(w), "posts:read"), **changes)
    pairs = query_of(w, resource=f"{SITE_URL}/api/public/mcp")
    tokens = redeem(w, allow(w, pairs, "posts:read", "mcp"))
    w.get(POSTS, bearer=tokens.text("access_token"))
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    w.post("/api/public/mcp", message, bearer=tokens.text("access_token"))
    refresh(w, tokens.text("refresh_token"), resource=f"{SITE_URL}/api/public/v1")
    for key in ("one table", "reading"):
        tokens = redeem(w, allow(w, query_of(w), "admin:read", key=key))
        w.get("/api/public/v1/admin/leads?limit=1", bearer=tokens.text("access_token"))


@walk("oauth-questions")
def questions(w: Walk) -> None:
    """Ask for the page with every faulty parameter, and by every kind of client."""
    cases: tuple[tuple[str, dict[str, str]], ...] = (
        ("app", {}),
        ("two", {}),
        ("local", {"redirect_uri": "http://127.0.0.1:9999/callback"}),
        ("cursor", {"redirect_uri": "cursor://callback"}),
        ("two", {"redirect_uri": ""}),
        ("local", {"redirect_uri": ""}),
        ("local", {"redirect_uri": "http://127.0.0.1:1/x"}),
        ("app", {"redirect_uri": "https://evil.example/"}),
        ("app", {"redirect_uri": "x"}),
        ("app", {"redirect_uri": f"{CALLBACK}?x=1"}),
        ("nobody", {}),
        ("", {}),
        ("robot", {}),
        ("app", {"response_type": "token"}),
        ("app", {"response_type": ""}),
        ("app", {"code_challenge": ""}),
        ("app", {"code_challenge": "short"}),
        ("app", {"code_challenge_method": "plain"}),
        ("app", {"code_challenge_method": ""}),
        ("app", {"scope": "posts:read"}),
        ("app", {"scope": "none"}),
        ("app", {"scope": "x y"}),
        ("app", {"scope": "posts:read admin:read none"}),
        ("app", {"scope": "offline_access"}),
        ("app", {"resource": f"{SITE_URL}/api/public/v1"}),
        ("app", {"resource": SITE_URL}),
        ("app", {"resource": f"{SITE_URL}/api/public/mcp"}),
        ("app", {"resource": "x"}),
        ("app", {"resource": "https://other.example"}),
        ("app", {"state": ""}),
        ("app", {"state": "ä<b>&\"'"}),
        ("app", {"state": "x" * 5000}),
        ("app", {"prompt": "none"}),
        ("https://127.0.0.1/client.json", {}),
        ("https://client.example", {}),
        ("http://client.example/x", {}),
        ("app", {"unknown": "x"}),
        ("app", {"request": "x"}),
    )
    for client, changes in cases:
        w.get(f"{AUTHORIZE}?{urlencode(query_of(w, client, **changes))}")
    pairs = query_of(w)
    w.get(f"{AUTHORIZE}?{urlencode([*pairs, *pairs])}")
    w.get(f"{AUTHORIZE}?{urlencode([*pairs, ('resource', SITE_URL), ('resource', SITE_URL)])}")
    w.ask("HEAD", f"{AUTHORIZE}?{urlencode(pairs)}")
    w.get(AUTHORIZE, headers={"Accept": "text/markdown"})
    w.get(f"{AUTHORIZE}?{urlencode(pairs)}", headers={"Accept": "text/markdown"})
    w.audit()


@walk("oauth-answers")
def answers(w: Walk) -> None:
    """Answer the question in every way."""
    pairs = query_of(w)
    key, allowed = ("api_key", w.secret("all")), ("decision", "allow")
    decide(w, pairs, ("decision", "deny"))
    decide(w, pairs)
    decide(w, pairs, ("decision", "maybe"))
    decide(w, pairs, allowed)
    decide(w, pairs, allowed, ("api_key", "fe_sk_wrong"))
    decide(w, pairs, allowed, ("api_key", w.secret("token")))
    decide(w, pairs, allowed, ("api_key", w.secret("revoked")))
    decide(w, pairs, allowed, key)
    decide(w, pairs, allowed, key, ("granted", "none"))
    decide(w, pairs, allowed, ("api_key", w.secret("posts")), ("granted", "admin:write"))
    decide(
        w,
        pairs,
        allowed,
        ("api_key", w.secret("posts")),
        ("granted", "leads:read"),
        ("granted", "posts:read"),
    )
    decide(w, pairs, allowed, ("api_key", f"  {w.secret('all')} "), ("granted", "posts:read"))
    decide(w, query_of(w, scope="posts:read"), allowed, key, ("granted", "admin:read"))
    members, cookie = show(w, pairs)
    form = [*members, ("decision", "deny")]
    w.post(AUTHORIZE, form=form)
    w.post(AUTHORIZE, form=form, headers={"Cookie": "a=b"})
    w.post(AUTHORIZE, form=[*form, ("state", "other")], headers=cookie)
    w.post(AUTHORIZE, form=[(n, "1.x" if n == "seal" else v) for n, v in form], headers=cookie)
    w.post(AUTHORIZE, form=[(n, "x" if n == "client_id" else v) for n, v in form], headers=cookie)
    w.post(AUTHORIZE, form=form, headers={**cookie, "Sec-Fetch-Site": "cross-site"})
    w.post(AUTHORIZE, form=form, headers={"Cookie": f"x=y; {cookie['Cookie']}; z"})
    w.post(AUTHORIZE, form=form, headers=cookie)
    w.post(AUTHORIZE, form=[])
    w.post(AUTHORIZE, {})
    w.audit()


@walk("oauth-registration")
def registration(w: Walk) -> None:
    """Register clients, and go the whole way with one of them."""
    good = {"redirect_uris": [CALLBACK], "client_name": "Agent"}
    cases: tuple[Any, ...] = (
        {},
        [],
        None,
        good,
        {**good, "redirect_uris": []},
        {**good, "redirect_uris": "x"},
        {**good, "redirect_uris": ["http://evil.example/"]},
        {**good, "redirect_uris": ["ftp://x"]},
        {**good, "redirect_uris": ["javascript:alert(1)"]},
        {**good, "redirect_uris": [5]},
        {**good, "redirect_uris": ["http://localhost:1/x", "http://[::1]/y", "cursor://z"]},
        {**good, "redirect_uris": ["https://u:p@x.example/"]},
        {**good, "redirect_uris": ["x#y"]},
        {**good, "redirect_uris": [f"{CALLBACK}/{n}" for n in range(21)]},
        {**good, "scope": "x"},
        {**good, "scope": "posts:read admin:write mcp"},
        {**good, "scope": None},
        {**good, "grant_types": ["authorization_code"]},
        {**good, "grant_types": ["password"]},
        {**good, "grant_types": ["client_credentials"]},
        {**good, "grant_types": None},
        {**good, "response_types": ["token"]},
        {**good, "response_types": ["code"]},
        {**good, "token_endpoint_auth_method": "client_secret_basic"},
        {**good, "client_name": ""},
        {**good, "client_name": "x" * 500},
        {**good, "client_name": None},
        {**good, "more": 1},
        {**good, "client_name": "a\x00"},
        {**good, "client_name": 5},
        {**good, "jwks": {}},
    )
    for given in cases:
        w.post(REGISTER, given)
    client = w.post(REGISTER, good).text("client_id")
    tokens = redeem(w, allow(w, query_of(w, client), "posts:read"), client)
    w.get(POSTS, bearer=tokens.text("access_token"))
    w.get(f"{AUTHORIZE}?{urlencode(query_of(w, client, response_type='token'))}")
    w.audit()
