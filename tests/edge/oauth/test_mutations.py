"""Ten thousand spoiled requests to the authorization server: refused, each of them, at no cost."""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest
from joserfc.jwk import ECKey, KeySet

from edge_api.oauth.clients import NewClient
from edge_api.oauth.server import OAuthServer
from tests.edge.oauth.conftest import (
    REDIRECT,
    basic,
    challenge_of,
    new_verifier,
    request_pairs,
)
from tests.edge.oauth.test_client_authentication import assertion
from tests.edge.oauth.test_consent_http import shown
from tests.sizes import scaled

pytestmark = pytest.mark.one_engine

REQUESTS = scaled(test=1000, ci=10_000)
AT_ONCE = 64
OAUTH = "/api/public/oauth"
Request = tuple[str, str, dict[str, Any]]

NASTY = [
    "",
    " ",
    "\x00",
    "\n",
    "\r\nSet-Cookie: a=b",
    "ä",
    "\ud7ff",
    "😀" * 50,
    '"',
    "\\",
    "'",
    "<b>",
    "%00",
    "%ff",
    "../",
    "a" * 10_000,
    "null",
    "[]",
    "{}",
    "0",
    "-1",
    "1e999",
    "NaN",
    "true",
    "ey.ey.ey",
    "e30.e30.e30",
    "fe_rt_" + "0" * 49,
    "fe_ac_" + "z" * 49,
    "https://127.0.0.1/x",
    "javascript:alert(1)",
    "http://127.0.0.1:99999/",
    "https://[::1",
    "*",
    "S256",
    "plain",
]


async def signed_request(edge: Any) -> Request:
    """Return a request of a client that signs for itself, with an assertion that holds."""
    key, signs = ECKey.generate_key("P-256", auto_kid=True), ("client_credentials",)
    jwks = KeySet([key]).as_dict(private=False)
    order = NewClient("Signer", "private_key_jwt", signs, ("posts:read",), jwks=jwks)
    client = (await edge.service[OAuthServer].clients.register(order))["id"]
    issuer = edge.service[OAuthServer].issuer.url
    form = {"grant_type": "client_credentials", **assertion(key, client, aud=issuer)}
    return "POST", f"{OAUTH}/token", {"data": form}


async def sealed_request(edge: Any, client: str) -> Request:
    """Return the form of a consent page, as the browser that it was shown to would send it."""
    members, cookie = await shown(edge, request_pairs(new_verifier(), client))
    form = {**dict(members), "decision": "allow", "granted": "posts:read", "api_key": "k"}
    return "POST", f"{OAUTH}/authorize", {"data": form, "headers": {"Cookie": cookie}}


def sound_requests(header: dict[str, str], client: str) -> list[Request]:
    """Return requests that mean something, to be spoiled."""
    grants = [
        {"grant_type": "client_credentials", "scope": "posts:read", "resource": "x"},
        {
            "grant_type": "authorization_code",
            "code": "fe_ac_x",
            "client_id": client,
            "redirect_uri": REDIRECT,
            "code_verifier": new_verifier(),
        },
        {"grant_type": "refresh_token", "refresh_token": "fe_rt_x", "client_id": client},
        {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": "e30.e30.e30",
        },
    ]
    asked = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": REDIRECT,
        "code_challenge": challenge_of(new_verifier()),
        "code_challenge_method": "S256",
        "state": "s",
        "scope": "posts:read",
        "resource": "x",
    }
    metadata = {"redirect_uris": [REDIRECT], "client_name": "Agent", "scope": "posts:read"}
    return [
        *(("POST", f"{OAUTH}/token", {"data": form, "headers": header}) for form in grants),
        *(("POST", f"{OAUTH}/token", {"data": form}) for form in grants),
        ("POST", f"{OAUTH}/revoke", {"data": {"token": "x", "client_id": client}}),
        ("POST", f"{OAUTH}/register", {"json": metadata}),
        ("GET", f"{OAUTH}/authorize", {"params": asked}),
        ("POST", f"{OAUTH}/authorize", {"data": {**asked, "decision": "allow", "api_key": "k"}}),
    ]


def spoil(dice: random.Random, request: Request) -> Request:
    """Return a request with one to three of its members, headers or bytes spoiled."""
    method, path, more = request
    kind = next(name for name in ("data", "json", "params") if name in more)
    members = dict(more[kind])
    for _ in range(dice.randint(1, 3)):
        name = dice.choice([*members, "unknown"])
        dice.choice(WAYS)(dice, members, name, is_json=kind == "json")
    headers = dict(more.get("headers", {}))
    if dice.random() < 0.1:
        headers["Authorization"] = dice.choice(CREDENTIALS)
    if kind == "data":
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return method, path, {"data": urlencode(members).encode(), "headers": headers}
    return method, path, {**more, kind: members, "headers": headers}


def drop(_dice: random.Random, members: dict[str, Any], name: str, **_: bool) -> None:
    """Leave a member out."""
    members.pop(name, None)


def replace(dice: random.Random, members: dict[str, Any], name: str, *, is_json: bool) -> None:
    """Put something nasty in its place."""
    values: list[Any] = [*NASTY, None, 7, [], {}, [[["x"]]], [None]] if is_json else NASTY
    members[name] = dice.choice(values)


def damage(dice: random.Random, members: dict[str, Any], name: str, **_: bool) -> None:
    """Change one character of a text."""
    text = str(members.get(name, ""))
    place = dice.randrange(len(text) + 1)
    members[name] = f"{text[:place]}{chr(dice.randrange(1, 0xD7FF))}{text[place + 1 :]}"


def rename(dice: random.Random, members: dict[str, Any], name: str, **_: bool) -> None:
    """Call a member by a name that nobody knows."""
    members[dice.choice(NASTY) or "x"] = members.pop(name, "x")


WAYS: list[Callable[..., None]] = [drop, replace, damage, rename]
CREDENTIALS = [
    "Basic",
    "Basic ",
    "Basic ????",
    "Basic /w==",
    "Basic OjpA",
    "Bearer x",
    "Digest a=b",
    "Basic ",
    "Basic " + "A" * 5000,
    "basic YTpi",
    "Basic YQ==",
    "Basic JUZGOmI=",
]


def all_requests(dice: random.Random, sound: list[Request]) -> Iterator[Request]:
    """Yield as many spoiled requests as the test is of."""
    for _ in range(REQUESTS):
        yield spoil(dice, dice.choice(sound))


async def send_all(edge: Any, requests: Iterator[Request]) -> Counter[int]:
    """Send requests, some at once; return how often each status came."""
    seen: Counter[int] = Counter()

    async def worker() -> None:
        for method, path, more in requests:
            async with asyncio.timeout(20), edge.ask(method, path, **more) as answer:
                body = await answer.read()
                seen[answer.status] += 1
                assert answer.status < 500, (method, path, more, body)
                assert b"Traceback" not in body

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return seen


@pytest.mark.size("test", grows=True)
@pytest.mark.parametrize("seed", [1])
async def test_thousands_of_mutated_requests_cause_no_error(edge: Any, seed: int) -> None:
    """None is a fault of ours, none hangs, and nothing of them stays behind."""
    order = NewClient("Robot", "client_secret_basic", ("client_credentials",), ("posts:read",))
    robot = await edge.service[OAuthServer].clients.register(order)
    public = NewClient("App", "none", ("authorization_code",), ("posts:read",), (REDIRECT,))
    client = (await edge.service[OAuthServer].clients.register(public))["id"]
    sound = [
        *sound_requests(basic(robot["id"], robot["secret"]), client),
        await signed_request(edge),
        await sealed_request(edge, client),
    ]
    dice = random.Random(seed)  # noqa: S311  no secret depends on it
    warm_up = iter([spoil(dice, dice.choice(sound)) for _ in range(REQUESTS // 5)])
    await send_all(edge, warm_up)
    gc.collect()
    process, tasks = psutil.Process(), len(asyncio.all_tasks())
    memory = process.memory_info().rss

    seen = await send_all(edge, all_requests(dice, sound))

    gc.collect()
    assert sum(seen.values()) == REQUESTS
    assert seen[400] > seen.total() / 10
    assert len(asyncio.all_tasks()) <= tasks + AT_ONCE // 8
    assert process.memory_info().rss <= memory * 1.05
