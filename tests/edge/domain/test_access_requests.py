import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_api.access import service as module
from edge_api.access.service import (
    AccessDecisions,
    AccessRequestInput,
    AccessRequests,
    count_pending,
)
from edge_api.auth.actor import recent_entries, system_clock
from edge_api.auth.keys import Keys
from edge_api.auth.rate_limits import Limiter
from edge_api.auth.secrets import hash_secret, is_well_formed
from edge_api.background import EXPIRING_TABLES, delete_expired
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.problems import Problem
from edge_api.db.query import Read, Store
from edge_api.db.sqlite.engine import open_store
from edge_api.settings import read_settings
from tests.edge.domain.doors import make_access

ADDRESS = "192.0.2.7"
ROUNDS = 20
SECRET = b"s" * 32


def order(**changes: Any) -> AccessRequestInput:
    """Return an order for an API key."""
    return AccessRequestInput.model_validate(
        {"type": "api_key", "name": "Ann", "purpose": "Read posts.", **changes}
    )


@pytest.fixture
def limiter(clock: Any) -> Limiter:
    """Return a limiter that counts leads at the default rate."""
    return Limiter(read_settings({}, dotenv=None), clock.seconds)


@pytest.fixture
def unlimited(clock: Any) -> Limiter:
    """Return a limiter that counts nothing."""
    return Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None), clock.seconds)


@pytest.fixture
def requests(store: Store, clock: Any, unlimited: Limiter) -> AccessRequests:
    """Return the requests of the store."""
    return AccessRequests(store, clock, unlimited, SECRET)


@pytest.fixture
def decisions(store: Store, clock: Any) -> AccessDecisions:
    """Return who decides about them."""
    return AccessDecisions(store, clock)


async def rows(store: Store) -> list[dict[str, Any]]:
    """Return every stored request."""
    (result,) = await store.run(Read(ACCESS_REQUESTS))
    return result.rows


async def problem_of(awaited: Any) -> Problem:
    """Return the problem that something awaited raises."""
    with pytest.raises(Problem) as caught:
        await awaited
    return caught.value


async def test_a_request_is_stored_without_its_token(
    requests: AccessRequests, store: Store
) -> None:
    """A reader of the store cannot claim the credential."""
    filed = await requests.submit(order(email="ann@example.org"), ADDRESS)

    (row,) = await rows(store)
    assert is_well_formed(filed.claim_token, "claim_token")
    assert filed.claim_token not in json.dumps(row)
    assert row == {
        "id": filed.row["id"],
        "type": "api_key",
        "name": "Ann",
        "email": "ann@example.org",
        "purpose": "Read posts.",
        "scopes": "posts:read",
        "claim_digest": hash_secret(filed.claim_token),
        "status": "pending",
        "created_at": "2026-06-01T12:00:00.000000Z",
        "expires_at": "2026-06-15T12:00:00.000000Z",
        "decided_at": None,
        "credential_id": None,
        "second_type": None,
        "second_credential_id": None,
        "credential_expires_at": None,
    }


async def test_nothing_is_handed_out_before_somebody_decides(
    requests: AccessRequests, keys: Keys
) -> None:
    """A claim may be made as often as one likes; it changes nothing."""
    filed = await requests.submit(order(), ADDRESS)
    for _ in range(3):
        assert (await requests.claim(filed.claim_token))[1] == ()

    assert await keys.all() == []


@pytest.mark.parametrize("kind", ["api_key", "access_token"])
async def test_an_approved_request_gives_its_credential_for_ten_minutes(
    requests: AccessRequests,
    decisions: AccessDecisions,
    store: Store,
    clock: Any,
    kind: str,
) -> None:
    """The same each time, so that a lost answer can be repeated; then the token gives nothing."""
    filed = await requests.submit(order(type=kind), ADDRESS)
    await decisions.approve(filed.row["id"])
    claimed = await requests.claim(filed.claim_token)

    (issued,) = claimed[1]
    assert is_well_formed(issued.secret, "api_key" if kind == "api_key" else "access_token")
    access = make_access(store, clock)
    actor = await access.authenticate(issued.secret, "rest" if kind == "api_key" else "mcp")
    assert (actor.name, actor.type) == ("Ann", kind)
    clock.move(minutes=9, seconds=59)
    (same,) = (await requests.claim(filed.claim_token))[1]
    assert (same.secret, same.row["id"]) == (issued.secret, issued.row["id"])
    clock.move(seconds=1)
    again = await problem_of(requests.claim(filed.claim_token))
    assert again.code == "conflict"
    assert "was handed out more than ten minutes ago, or is not valid any more" in again.message
    (row,) = await rows(store)
    assert (row["status"], row["credential_id"]) == ("claimed", actor.credential_id)


async def test_fifty_claims_at_once_get_the_same_credential(
    requests: AccessRequests, decisions: AccessDecisions, keys: Keys
) -> None:
    """No second credential is made."""
    for made in range(1, ROUNDS + 1):
        filed = await requests.submit(order(), ADDRESS)
        await decisions.approve(filed.row["id"])
        outcomes = await asyncio.gather(*(requests.claim(filed.claim_token) for _ in range(50)))

        assert len({each[1][0].secret for each in outcomes}) == 1
        assert len(await keys.all()) == made


async def test_one_approval_gives_a_credential_for_each_door(
    requests: AccessRequests, decisions: AccessDecisions, store: Store, clock: Any
) -> None:
    """An API key for REST and an access token for MCP, with the same scopes; both again."""
    filed = await requests.submit(order(type="both", scopes=["posts:read"]), ADDRESS)
    unsound = await problem_of(decisions.approve(filed.row["id"], ("posts:read",)))
    assert unsound.message == "scopes: an access token needs the scope mcp"
    await decisions.approve(filed.row["id"])
    key, token = (await requests.claim(filed.claim_token))[1]
    again = (await requests.claim(filed.claim_token))[1]

    access = make_access(store, clock)
    actors = [
        await access.authenticate(key.secret, "rest"),
        await access.authenticate(token.secret, "mcp"),
    ]
    assert [each.scopes for each in actors] == [frozenset({"posts:read", "mcp"})] * 2
    assert [each.secret for each in again] == [key.secret, token.secret]
    (row,) = await rows(store)
    ids = [row["credential_id"], row["second_credential_id"]]
    assert ids == [each.credential_id for each in actors]


async def test_a_credential_that_has_ended_is_not_handed_out_again(
    requests: AccessRequests, decisions: AccessDecisions, store: Store, clock: Any, keys: Keys
) -> None:
    """One that was revoked, or that another SECRET_KEY gave."""
    unlimited = Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None), clock.seconds)
    filed = await requests.submit(order(type="both"), ADDRESS)
    await decisions.approve(filed.row["id"])
    key, _ = (await requests.claim(filed.claim_token))[1]
    other = AccessRequests(store, clock, unlimited, b"t" * 32)
    assert (await problem_of(other.claim(filed.claim_token))).code == "conflict"
    await keys.revoke(key.row["id"])
    assert (await problem_of(requests.claim(filed.claim_token))).code == "conflict"


async def test_a_late_claim_can_be_repeated_too(
    requests: AccessRequests, decisions: AccessDecisions, store: Store, clock: Any
) -> None:
    """Also where the fourteen days end in between."""
    filed = await requests.submit(order(), ADDRESS)
    await decisions.approve(filed.row["id"])
    clock.move(days=13, hours=23, minutes=59)
    first = (await requests.claim(filed.claim_token))[1]
    clock.move(minutes=9)
    await delete_expired(store, clock)

    assert (await requests.claim(filed.claim_token))[1][0].secret == first[0].secret


async def test_a_claim_of_a_denied_request_says_so(
    requests: AccessRequests, decisions: AccessDecisions, keys: Keys
) -> None:
    """Also one that was approved before and not fetched yet."""
    first = await requests.submit(order(), ADDRESS)
    second = await requests.submit(order(), ADDRESS)
    await decisions.approve(second.row["id"])
    for filed in (first, second):
        await decisions.deny(filed.row["id"])
        assert (await problem_of(requests.claim(filed.claim_token))).code == "forbidden"

    assert await keys.all() == []


@pytest.mark.parametrize("token", ["", "fe_cl_", "x" * 10_000, "fe_sk_" + "a" * 49, "\ud800"])
async def test_an_unknown_token_is_not_found(requests: AccessRequests, token: str) -> None:
    """For any token that somebody makes up."""
    await requests.submit(order(), ADDRESS)

    assert (await problem_of(requests.claim(token))).code == "not_found"


async def test_a_request_is_over_after_fourteen_days(
    requests: AccessRequests, decisions: AccessDecisions, store: Store, clock: Any
) -> None:
    """Decided or not: it can be neither claimed nor decided, is not listed, and is deleted."""
    waiting = await requests.submit(order(), ADDRESS)
    approved = await requests.submit(order(), ADDRESS)
    await decisions.approve(approved.row["id"])
    clock.move(days=13, hours=23)
    await delete_expired(store, clock)
    assert len(await decisions.all()) == len(await rows(store)) == 2

    clock.move(hours=1)
    for filed in (waiting, approved):
        assert (await problem_of(requests.claim(filed.claim_token))).code == "not_found"
        assert (await problem_of(decisions.approve(filed.row["id"]))).code == "not_found"
    assert (await decisions.all(), await count_pending(store, clock())) == ([], 0)
    await delete_expired(store, clock)
    assert await rows(store) == []


async def test_housekeeping_writes_nothing_for_nothing(watched: Any, clock: Any) -> None:
    """While no request is over, the store is only read."""
    watched.read_only = True

    await delete_expired(watched, clock)
    assert watched.runs == len(EXPIRING_TABLES)


async def test_pending_requests_are_limited(
    requests: AccessRequests, decisions: AccessDecisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of many that come at once; a decision makes room for one more."""
    monkeypatch.setattr(module, "MAX_PENDING", 5)
    filing = (requests.submit(order(), ADDRESS) for _ in range(12))
    outcomes = await asyncio.gather(*filing, return_exceptions=True)

    refused = [each for each in outcomes if isinstance(each, Problem)]
    assert len(refused) == 7
    assert {(problem.code, problem.headers["Retry-After"]) for problem in refused} == {
        ("unavailable", "3600")
    }
    assert len([each for each in await decisions.all() if each["status"] == "pending"]) == 5
    await decisions.deny((await decisions.all())[0]["id"])
    await requests.submit(order(), ADDRESS)
    assert (await problem_of(requests.submit(order(), ADDRESS))).code == "unavailable"


async def test_requests_count_by_themselves(store: Store, clock: Any, limiter: Limiter) -> None:
    """Five in ten minutes from one address; one that was not taken does not count."""
    requests = AccessRequests(store, clock, limiter, SECRET)
    for left in (4, 3, 2, 1, 0):
        quota = (await requests.submit(order(), ADDRESS)).quota
        assert quota is not None
        assert quota.headers["RateLimit"].startswith(f'"access_requests";r={left};')
    problem = await problem_of(requests.submit(order(), ADDRESS))
    assert (problem.code, problem.headers["Retry-After"]) == ("too_many_requests", "600")
    await requests.submit(order(), "192.0.2.8")


async def test_a_request_that_was_not_stored_does_not_count(
    watched: Any, clock: Any, limiter: Limiter
) -> None:
    """While the store is out of reach, nobody's room is used up."""
    requests = AccessRequests(watched, clock, limiter, SECRET)
    watched.away = True
    for _ in range(6):
        assert (await problem_of(requests.submit(order(), ADDRESS))).code == "unavailable"
    watched.away = False

    quota = (await requests.submit(order(), ADDRESS)).quota
    assert quota is not None
    assert quota.headers["RateLimit"].startswith('"access_requests";r=4;')


async def test_the_honeypot_denies_at_once(
    requests: AccessRequests, decisions: AccessDecisions, store: Store, clock: Any
) -> None:
    """A machine that fills it in waits on nobody's desk; it is listed as what it is."""
    filed = await requests.submit(order(_gotcha="x"), ADDRESS)

    assert is_well_formed(filed.claim_token, "claim_token")
    assert await count_pending(store, clock()) == 0
    assert [row["status"] for row in await decisions.all()] == ["denied"]
    assert (await problem_of(requests.claim(filed.claim_token))).code == "forbidden"
    assert [entry["verb"] for entry in await recent_entries(store, 5)] == ["trap"]


async def test_administrative_scopes_are_only_given_by_name(
    requests: AccessRequests, decisions: AccessDecisions
) -> None:
    """A request for them is granted posts alone, unless the decision names them."""
    every = order(scopes=["posts:read", "admin:read", "mcp"])
    unnamed = await requests.submit(every, ADDRESS)
    named = await requests.submit(every, ADDRESS)
    await decisions.approve(unnamed.row["id"])
    await decisions.approve(named.row["id"], ("admin:read", "admin:write"))

    given = [(await requests.claim(filed.claim_token))[1] for filed in (unnamed, named)]
    assert [issued[0].row["scopes"] for issued in given] == [
        "posts:read",
        "admin:read admin:write",
    ]


@pytest.mark.parametrize(
    ("changes", "scopes", "message"),
    [
        ({}, ("everything",), "scopes: there is no scope 'everything'"),
        ({"type": "access_token"}, ("posts:read",), "scopes: an access token needs the scope mcp"),
    ],
)
async def test_scopes_that_cannot_be_are_refused_on_approval(
    requests: AccessRequests,
    decisions: AccessDecisions,
    changes: dict[str, Any],
    scopes: tuple[str, ...],
    message: str,
) -> None:
    """The operator learns of a slip, not whoever asked; the request waits on."""
    filed = await requests.submit(order(**changes), ADDRESS)

    problem = await problem_of(decisions.approve(filed.row["id"], scopes))
    assert (problem.code, problem.message[: len(message)]) == ("invalid", message)
    assert [row["status"] for row in await decisions.all()] == ["pending"]


async def test_a_request_is_decided_once(
    requests: AccessRequests, decisions: AccessDecisions
) -> None:
    """A decision is final, except that an approval can be undone until it is used."""
    filed = await requests.submit(order(), ADDRESS)
    request_id = filed.row["id"]
    await decisions.approve(request_id)
    again = await problem_of(decisions.approve(request_id))
    assert again.code == "conflict"
    assert again.message == f"The request {request_id} is approved already"
    await requests.claim(filed.claim_token)

    late = await problem_of(decisions.deny(request_id))
    assert late.message == f"The request {request_id} is claimed already"


@pytest.mark.parametrize("request_id", ["", "nonsense", "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"])
async def test_an_unknown_request_is_not_found(decisions: AccessDecisions, request_id: str) -> None:
    """A typing error is reported in a sentence."""
    for deciding in (decisions.approve(request_id), decisions.deny(request_id)):
        problem = await problem_of(deciding)
        assert problem.code == "not_found"
        assert problem.message.startswith(f"There is no request {request_id}")


async def test_every_step_is_in_the_audit_log(
    requests: AccessRequests, decisions: AccessDecisions, store: Store
) -> None:
    """It says who filed, decided and fetched, and names the credential."""
    filed = await requests.submit(order(), ADDRESS)
    await decisions.approve(filed.row["id"])
    claimed = await requests.claim(filed.claim_token)
    other = await requests.submit(order(), ADDRESS)
    await decisions.deny(other.row["id"])

    holder = f"credential:{claimed[1][0].row['id']}"
    entries = await recent_entries(store, 10)
    said = {(each["actor"], each["verb"], each["table_name"], each["rows"]) for each in entries}
    assert len(entries) == 6
    assert said == {
        ("anybody", "file", "access_requests", 1),
        ("credential:operator", "approve", "access_requests", 1),
        ("credential:operator", "deny", "access_requests", 1),
        (holder, "claim", "access_requests", 1),
        (holder, "issue", "credentials", 1),
    }


@pytest.fixture
def file_one(tmp_path: Path) -> Callable[..., str]:
    """Return what files a request in the store of the commands, and gives back its id."""

    async def file(changes: dict[str, Any]) -> str:
        store = await open_store(tmp_path / "edge.db", system_clock)
        try:
            limiter = Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None))
            requests = AccessRequests(store, system_clock, limiter, SECRET)
            filed = await requests.submit(order(**changes), "x")
        finally:
            await store.close()
        return str(filed.row["id"])

    return lambda **changes: asyncio.run(file(changes))


def test_the_command_lists_approves_and_denies(
    file_one: Callable[..., str], run_command: Callable[..., Any]
) -> None:
    """A life of two requests at the terminal."""
    first, second = file_one(), file_one(name="Zoë", type="access_token", email="z@example.org")
    approved = run_command("requests", "approve", first, "--scopes", "posts:read, admin:read")
    denied = run_command("requests", "deny", second)
    listed = json.loads(run_command("requests", "list", "--json").out)
    table = run_command("requests", "list").out.splitlines()

    assert approved.code == denied.code == 0
    assert approved.out.startswith(f"{first} is approved with posts:read admin:read; its claim")
    assert denied.out == f"{second} is denied\n"
    assert {each["id"]: (each["status"], each["scopes"]) for each in listed} == {
        first: ("approved", ["posts:read", "admin:read"]),
        second: ("denied", ["posts:read", "mcp"]),
    }
    assert all("digest" not in name for each in listed for name in each)
    assert table[0].split() == [
        "ID",
        "NAME",
        "E-MAIL",
        "TYPE",
        "STATUS",
        "SCOPES",
        "FILED",
        "ENDS",
        "PURPOSE",
    ]
    assert len(table) == 3
    file_one(type="both")
    assert json.loads(run_command("requests", "list", "--json").out)[0]["type"] == "both"
    assert " both " in run_command("requests", "list").out


def test_terminal_escapes_are_neutralized(
    file_one: Callable[..., str], run_command: Callable[..., Any]
) -> None:
    """Marks that turn text around are shown as signs, and a long purpose is cut."""
    file_one(name="a\u202eb", purpose="one\ntwo\t" + "x" * 500)
    head, line = run_command("requests", "list").out.splitlines()

    assert "a\ufffdb" in line
    assert "one two xxx" in line
    assert line.endswith("x…")
    assert len(line) < len(head) + 100


def test_the_command_says_when_there_is_nothing(run_command: Callable[..., Any]) -> None:
    """An empty list is a sentence; an unknown request is one on the other stream."""
    run_command("migrate")
    nobody = run_command("requests", "list")
    unknown = run_command("requests", "approve", "nonsense")

    assert nobody.out == "nobody has asked for access\n"
    assert json.loads(run_command("requests", "list", "--json").out) == []
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err == "There is no request nonsense, or it has expired\n"


def test_a_misspelt_scope_ends_the_command_with_2(
    file_one: Callable[..., str], run_command: Callable[..., Any]
) -> None:
    """A misspelt scope is wrong usage: the status differs from that of a failure."""
    ended = run_command("requests", "approve", file_one(), "--scopes", "posts:raed")

    assert ended.code == 2
    assert "there is no scope 'posts:raed'" in ended.err
