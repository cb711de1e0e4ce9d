"""Walks to the token endpoint: clients that act for themselves, revocation, and errors."""

import time
from typing import Any, Final

from joserfc import jwt

from tests.replay.stage import SITE_URL
from tests.replay.walk import Walk, walk

TOKEN: Final = "/api/public/oauth/token"
REVOKE: Final = "/api/public/oauth/revoke"
POSTS: Final = "/api/public/v1/posts/first-edge"
OWN: Final = {"grant_type": "client_credentials"}
ASSERTED: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MCP: Final = f"{SITE_URL}/api/public/mcp"
REST: Final = f"{SITE_URL}/api/public/v1"


def own_token(w: Walk, **more: str) -> str:
    """Return an access token of the client that acts for itself."""
    headers = [w.basic("robot")]
    return w.post(TOKEN, form={**OWN, **more}, headers=headers).text("access_token")


@walk("oauth-credentials")
def credentials(w: Walk) -> None:
    """Authenticate in each way, and use what comes."""
    robot, poster = w.stage.clients["robot"], w.stage.clients["poster"]
    for more in (
        {},
        {"scope": "posts:read"},
        {"scope": "posts:read leads:read"},
        {"scope": ""},
        {"resource": REST},
        {"resource": MCP},
        {"resource": SITE_URL},
        {"scope": "offline_access"},
        {"resource": "https://other.example"},
        {"scope": "none"},
        {"scope": "admin:read"},
        {"resource": "x"},
        {"scope": "posts:read none"},
        {"unknown": "x"},
        {"code": "x"},
    ):
        answer = w.post(TOKEN, form={**OWN, **more}, headers=[w.basic("robot")])
        if answer.status == 200:
            w.get(POSTS, bearer=answer.text("access_token"))
            w.get("/api/public/v1/leads", bearer=answer.text("access_token"))
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            w.post("/api/public/mcp", message, bearer=answer.text("access_token"))
    secret = w.secret("robot secret")
    w.post(TOKEN, form={**OWN, "client_id": robot, "client_secret": secret})
    secret = w.secret("poster secret")
    w.post(TOKEN, form={**OWN, "client_id": poster, "client_secret": secret})
    w.post(TOKEN, form=OWN, headers=[w.basic("poster")])
    bearer = own_token(w)
    w.get(POSTS, key=bearer)
    head, claims, signature = bearer.split(".")
    for broken in (
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-4]}AAAA",
        f"{head}.e30.{signature}",
        "a.b.c",
        f"{head}.{claims}",
        f"{bearer}x",
        "eyJhbGciOiJub25lIn0.e30.",
    ):
        w.get(POSTS, bearer=broken)
    row = {"email": "oauth@example.org", "reason": "bounce"}
    w.post("/api/public/v1/admin/suppressed_emails", row, bearer=bearer)
    w.get("/.well-known/jwks.json")
    w.audit()
    w.command("clients", "list")


@walk("oauth-token-errors")
def errors(w: Walk) -> None:
    """Ask for tokens in every way that is refused."""
    robot = w.stage.clients["robot"]
    basic = w.basic("robot")
    given: tuple[tuple[list[tuple[str, str]], dict[str, str]], ...] = (
        ([], OWN),
        ([], {}),
        ([basic], {}),
        ([basic], {"grant_type": ""}),
        ([basic], {"grant_type": "password", "username": "a", "password": "b"}),
        ([basic], {"grant_type": "implicit"}),
        ([basic], {"grant_type": "authorization_code"}),
        ([basic], {"grant_type": "authorization_code", "code": "x"}),
        ([basic], {"grant_type": "refresh_token"}),
        ([basic], {"grant_type": "refresh_token", "refresh_token": "fe_rt_x"}),
        ([w.basic("robot", "wrong")], OWN),
        ([w.basic("nobody", "wrong")], OWN),
        ([("Authorization", "Basic ????")], OWN),
        ([("Authorization", "Basic /w==")], OWN),
        ([("Authorization", "Bearer x")], OWN),
        ([basic], {**OWN, "client_secret": w.secret("robot secret")}),
        ([basic], {**OWN, "client_id": "other"}),
        ([basic], {**OWN, "client_id": robot}),
        ([], {**OWN, "client_id": robot}),
        ([], {**OWN, "client_id": robot, "client_secret": "wrong"}),
        ([], {**OWN, "client_id": w.stage.clients["app"]}),
        ([], {**OWN, "client_id": "https://client.example/x"}),
        ([basic], {**OWN, "scope": 'a"b'}),
        ([basic], {**OWN, "scope": "ä"}),
        ([basic], {**OWN, "scope": "x" * 5000}),
        ([], {**OWN, "client_assertion_type": ASSERTED}),
        ([], {**OWN, "client_assertion_type": "x", "client_assertion": "a.b.c"}),
        ([], {**OWN, "client_assertion_type": ASSERTED, "client_assertion": "a.b.c"}),
        ([basic], {**OWN, "client_assertion_type": ASSERTED, "client_assertion": "a.b.c"}),
    )
    for headers, form in given:
        w.post(TOKEN, form=form, headers=headers)
        w.post(REVOKE, form={**form, "token": "fe_rt_x"}, headers=headers)
    w.post(TOKEN, form=[*OWN.items(), *OWN.items()], headers=[basic])
    w.post(TOKEN, form=[*OWN.items(), ("resource", REST), ("resource", MCP)], headers=[basic])
    w.post(TOKEN, OWN, headers=[basic])
    w.post(TOKEN, form=OWN, headers=[basic, ("Origin", "https://other.example")])
    w.post(f"{TOKEN}?grant_type=client_credentials", form={}, headers=[basic])
    w.audit()


@walk("oauth-revocation")
def revocation(w: Walk) -> None:
    """Take tokens back."""
    basic = w.basic("robot")
    for hint in ({}, {"token_type_hint": "access_token"}, {"token_type_hint": "refresh_token"}):
        bearer = own_token(w)
        w.get(POSTS, bearer=bearer)
        w.post(REVOKE, form={"token": bearer, **hint}, headers=[basic])
        w.get(POSTS, bearer=bearer)
        w.post(REVOKE, form={"token": bearer, **hint}, headers=[basic])
    bearer = own_token(w)
    w.post(REVOKE, form={"token": bearer}, headers=[w.basic("poster")])
    w.post(REVOKE, form={"token": bearer})
    w.get(POSTS, bearer=bearer)
    for token in ("", "x", "fe_rt_x", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x" * 9000):
        w.post(REVOKE, form={"token": token}, headers=[basic])
    w.command("clients", "revoke", w.stage.clients["robot"])
    w.get(POSTS, bearer=bearer)
    w.post(TOKEN, form=OWN, headers=[basic])


@walk("oauth-assertions")
def assertions(w: Walk) -> None:
    """Authenticate by a JWT that the client has signed."""
    client, now = w.stage.clients["signer"], int(time.time())
    claims: dict[str, Any] = {"iss": client, "sub": client, "aud": SITE_URL, "exp": now + 200}
    cases: tuple[dict[str, Any], ...] = (
        {},
        {"aud": f"{SITE_URL}{TOKEN}"},
        {"aud": [SITE_URL]},
        {"aud": "https://other.example"},
        {"exp": 1},
        {"exp": now + 86_400},
        {"exp": "soon"},
        {"exp": None},
        {"iss": "x"},
        {"sub": "x"},
        {"sub": None},
        {"sub": 7},
        {"jti": None},
        {"jti": 7},
        {"iat": now},
        {"aud": None},
        {"nbf": now + 3600},
        {"more": "x"},
    )
    for number, changes in enumerate(cases):
        given = {**claims, "jti": f"assertion-{number}", **changes}
        form = {**OWN, "client_assertion_type": ASSERTED, "client_assertion": _sign(w, given)}
        answer = w.post(TOKEN, form=form)
        if answer.status == 200 and number < 2:
            w.get(POSTS, bearer=answer.text("access_token"))
            w.post(TOKEN, form=form)
    form = {"client_assertion_type": ASSERTED, "client_id": client}
    signed = _sign(w, {**claims, "jti": "last"})
    w.post(TOKEN, form={**OWN, **form, "client_assertion": signed})
    w.post(TOKEN, form={**OWN, **form, "client_assertion": f"{signed[:-4]}AAAA"})
    signed = _sign(w, {**claims, "jti": "revoking"})
    w.post(REVOKE, form={**form, "client_assertion": signed, "token": "x"})


def _sign(w: Walk, claims: dict[str, Any]) -> str:
    known = {name: value for name, value in claims.items() if value is not None}
    header = {"alg": "ES256", "kid": "replay"}
    return str(jwt.encode(header, known, w.stage.signing_key, algorithms=["ES256"]))
