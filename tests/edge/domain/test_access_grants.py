"""Scopes and ends of what requests for access get, and the keys that are out already."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_api.access.service import AccessDecisions, AccessRequestInput, AccessRequests
from edge_api.auth.actor import system_clock
from edge_api.auth.keys import IssuedKey, Keys, NewKey
from edge_api.auth.rate_limits import Limiter
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.migrations import MIGRATIONS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Insert, Read, Store, Update
from edge_api.db.sqlite import opening
from edge_api.db.sqlite.engine import open_store
from edge_api.db.tables import CREDENTIALS, LEADS
from edge_api.db.types import format_instant
from edge_api.settings import read_settings
from tests.edge.postgresql import PostgreSQL
from tests.edge.store.samples import clock as store_clock
from tests.edge.store.samples import make_lead

ALL = ["posts:read", "leads:read", "leads:write", "admin:read", "admin:write", "metrics:read"]
SECRET = b"s" * 32
FORMER_SCHEMA = 8
"""The schema of version 1.0.0."""


def order(**changes: Any) -> AccessRequestInput:
    """Return an order for an API key."""
    return AccessRequestInput.model_validate(
        {"type": "api_key", "name": "Ann", "purpose": "Read posts.", **changes}
    )


@pytest.fixture
def requests(store: Store, clock: Any) -> AccessRequests:
    """Return the requests of the store, without a limit."""
    limiter = Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None), clock.seconds)
    return AccessRequests(store, clock, limiter, SECRET)


@pytest.fixture
def decisions(store: Store, clock: Any) -> AccessDecisions:
    """Return who decides about them."""
    return AccessDecisions(store, clock)


async def problem_of(awaited: Any) -> Problem:
    """Return the problem that something awaited raises."""
    with pytest.raises(Problem) as caught:
        await awaited
    return caught.value


async def statuses(store: Store) -> list[tuple[str, str]]:
    """Return status and scopes of each request."""
    (found,) = await store.run(Read(ACCESS_REQUESTS))
    return [(row["status"], row["scopes"]) for row in found.rows]


@pytest.mark.parametrize(
    ("kind", "scopes"),
    [
        ("api_key", "posts:read"),
        ("access_token", "posts:read mcp"),
        ("both", "posts:read mcp"),
    ],
)
@pytest.mark.parametrize("asked", [ALL, ["leads:read"], None])
async def test_an_approval_gives_posts_whatever_was_asked_for(
    requests: AccessRequests, decisions: AccessDecisions, kind: str, scopes: str, asked: Any
) -> None:
    """Asking opens nothing; a token for MCP gets `mcp` too, which opens nothing by itself."""
    filed = await requests.submit(order(type=kind, scopes=asked), "192.0.2.7")
    if asked is None:
        assert filed.row["scopes"] == scopes
    approved = await decisions.approve(filed.row["id"])
    _, issued = await requests.claim(filed.claim_token)

    assert approved["scopes"] == scopes
    assert {each.row["scopes"] for each in issued} == {scopes}


async def test_approvals_of_a_former_version_give_posts_and_end(
    requests: AccessRequests, store: Store, clock: Any
) -> None:
    """It runs until its restart, approves all that was asked for, and writes no end."""
    filed = await requests.submit(order(scopes=ALL), "192.0.2.7")
    now = format_instant(clock())
    values = {"status": "approved", "decided_at": now, "scopes": "posts:read admin:write"}
    await store.run(Update(ACCESS_REQUESTS, values, (Filter("id", "eq", filed.row["id"]),)))
    _, (issued,) = await requests.claim(filed.claim_token)

    assert issued.row["scopes"] == "posts:read"
    assert issued.row["expires_at"] == format_instant(clock() + timedelta(days=90))


@pytest.mark.parametrize("kind", ["api_key", "access_token", "both"])
async def test_a_requested_credential_ends_90_days_after_the_approval(
    requests: AccessRequests, decisions: AccessDecisions, clock: Any, kind: str
) -> None:
    """However late it is fetched; the answer that is repeated says the same."""
    filed = await requests.submit(order(type=kind), "192.0.2.7")
    await decisions.approve(filed.row["id"])
    end = format_instant(clock() + timedelta(days=90))
    clock.move(days=10)
    for _ in range(2):
        _, issued = await requests.claim(filed.claim_token)
        assert {each.row["expires_at"] for each in issued} == {end}


async def test_the_owner_chooses_the_end(
    requests: AccessRequests, decisions: AccessDecisions
) -> None:
    """A day, or none on purpose; a token ends after 90 days even then."""
    day = "2027-01-31T00:00:00.000000Z"
    ends = {}
    for end in (day, None):
        filed = await requests.submit(order(type="both"), "192.0.2.7")
        await decisions.approve(filed.row["id"], end=end)
        _, (key, token) = await requests.claim(filed.claim_token)
        ends[end] = (key.row["expires_at"], token.row["expires_at"])

    assert ends == {day: (day, day), None: (None, "2026-08-30T12:00:00.000000Z")}


@pytest.mark.parametrize(
    ("kind", "scopes", "end", "message"),
    [
        ("api_key", (), "2026-06-01T12:00:00.000000Z", "expires: must be in the future"),
        ("access_token", (), None, "expires: an access token always ends"),
        ("api_key", ("posts:raed",), "", "scopes: there is no scope 'posts:raed'"),
        ("both", ("posts:read",), "", "scopes: an access token needs the scope mcp"),
    ],
)
async def test_a_faulty_approval_changes_nothing(  # noqa: PLR0913
    requests: AccessRequests,
    decisions: AccessDecisions,
    store: Store,
    *,
    kind: str,
    scopes: tuple[str, ...],
    end: str | None,
    message: str,
) -> None:
    """The sentence begins with what to fix; the request still waits."""
    filed = await requests.submit(order(type=kind), "192.0.2.7")
    problem = await problem_of(decisions.approve(filed.row["id"], scopes, end))

    assert (problem.code, problem.message[: len(message)]) == ("invalid", message)
    assert [status for status, _ in await statuses(store)] == ["pending"]


async def test_a_credential_whose_end_has_come_is_not_handed_out(
    requests: AccessRequests, decisions: AccessDecisions, clock: Any, keys: Keys
) -> None:
    """The claim token is over then, and says so; no key is made."""
    filed = await requests.submit(order(), "192.0.2.7")
    end = format_instant(clock() + timedelta(days=1))
    assert (await decisions.approve(filed.row["id"], end=end))["expires_at"] == end
    clock.move(days=1)

    problem = await problem_of(requests.claim(filed.claim_token))
    assert (problem.code, "it has expired" in problem.message) == ("not_found", True)
    assert await keys.all() == []


async def test_two_windows_decide_once(
    requests: AccessRequests, decisions: AccessDecisions, store: Store
) -> None:
    """The first of concurrent approvals with other scopes and ends holds, and is claimed."""
    for _ in range(10):
        filed = await requests.submit(order(), "192.0.2.7")
        given = [("posts:read",), ("posts:read", "leads:read")]
        asking = (decisions.approve(filed.row["id"], scopes) for scopes in given)
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        (won,) = [each for each in outcomes if not isinstance(each, BaseException)]
        (lost,) = [each for each in outcomes if isinstance(each, Problem)]
        assert lost.message == f"The request {filed.row['id']} is approved already"
        _, (issued,) = await requests.claim(filed.claim_token)
        assert issued.row["scopes"] == won["scopes"]
    assert {status for status, _ in await statuses(store)} == {"claimed"}


async def test_a_denial_after_an_approval_gives_nothing(
    requests: AccessRequests, decisions: AccessDecisions, keys: Keys
) -> None:
    """And what is denied is not approved after that."""
    filed = await requests.submit(order(), "192.0.2.7")
    await decisions.approve(filed.row["id"], ("posts:read", "leads:read"), None)
    await decisions.deny(filed.row["id"])

    assert (await problem_of(requests.claim(filed.claim_token))).code == "forbidden"
    assert (await problem_of(decisions.approve(filed.row["id"]))).code == "conflict"
    assert await keys.all() == []


async def issue_marked(store: Store, keys: Keys, name: str, **changes: Any) -> IssuedKey:
    """Issue a key as one that a request got before 1.0.1."""
    issued = await keys.issue(NewKey(name, **{"scopes": ("leads:read",), **changes}))
    where = (Filter("id", "eq", issued.row["id"]),)
    await store.run(Update(CREDENTIALS, {"needs_review": 1}, where))
    return issued


async def test_open_keys_are_named(store: Store, keys: Keys, clock: Any) -> None:
    """Those that read enquiries and never end, the oldest first, and no others."""
    assert await keys.find_unreviewed() == ([], "all enquiries", "")
    await store.run(Insert(LEADS, [make_lead()]))
    assert (await keys.find_unreviewed())[1] == "all enquiries"
    await store.run(Insert(LEADS, [make_lead() for _ in range(2)]))
    await issue_marked(store, keys, "reads posts", scopes=("posts:read", "leads:write"))
    await issue_marked(store, keys, "ends", expires_at=format_instant(clock() + timedelta(days=1)))
    revoked = await issue_marked(store, keys, "revoked")
    await keys.revoke(revoked.row["id"])
    await keys.issue(NewKey("the owner's own", scopes=("leads:read",)))
    first = await issue_marked(store, keys, "Lena's app")
    _, leads, said = await keys.find_unreviewed()
    assert leads == "all 3 enquiries"
    assert said == "1 key given to a request can read all 3 enquiries and never ends: Lena's app"

    clock.move(hours=1)
    await issue_marked(store, keys, "Bot", scopes=("posts:read", "admin:read"))
    found, _, said = await keys.find_unreviewed()
    assert [row["name"] for row in found] == ["Lena's app", "Bot"]
    assert said == (
        "2 keys given to requests can read all 3 enquiries and never end: Lena's app, Bot"
    )
    for number in range(5):
        clock.move(hours=1)
        await issue_marked(store, keys, f"n{number}")
    assert (await keys.find_unreviewed())[2].endswith(": Lena's app, Bot, n0, n1, n2 and 2 more")

    successor = await keys.rotate(first.row["id"])
    assert successor.row["id"] in {row["id"] for row in (await keys.find_unreviewed())[0]}
    for end in ("", None, "2027-01-31T00:00:00.000000Z"):
        (key, *_), _, _ = await keys.find_unreviewed()
        assert (await keys.set_end(key["id"], end))["needs_review"] == 0
        assert key["id"] not in {row["id"] for row in (await keys.find_unreviewed())[0]}


async def test_the_end_of_a_key_is_set(store: Store, keys: Keys, clock: Any) -> None:
    """90 days without a day; the past, and keys that are no longer valid, are refused."""
    issued = await keys.issue(NewKey("a"))
    end = format_instant(clock() + timedelta(days=90))
    assert (await keys.set_end(issued.row["id"]))["expires_at"] == end
    assert [row["expires_at"] for row in await keys.all()] == [end]
    past = await problem_of(keys.set_end(issued.row["id"], format_instant(clock())))
    assert (past.code, past.message) == ("invalid", "expires: must be in the future")
    assert (await problem_of(keys.set_end("nonsense"))).code == "not_found"
    await keys.rotate(issued.row["id"])
    assert (await problem_of(keys.set_end(issued.row["id"], None))).message == (
        f"The key {issued.row['id']} is rotated already"
    )
    clock.move(days=90)
    for row in await keys.all():
        assert (await problem_of(keys.set_end(row["id"], None))).code == "conflict"
    (found,) = await store.run(Read(CREDENTIALS, where=(Filter("expires_at", "is", None),)))
    assert found.rows == []


def rows_of_the_former_schema() -> list[str]:
    """Return what stores a key for each way in which a key could come into being, as SQL."""
    at = "2026-05-01T10:00:00.{:06}Z".format
    key = (
        "INSERT INTO credentials (id, name, type, digest, last_four, scopes, created_at, "
        "expires_at, rotated_at) VALUES ('{}', '{}', 'api_key', '{}', 'abcd', "
        "'posts:read leads:read', '{}', {}, {})"
    ).format
    numbered = "00000000-0000-4000-8000-{:012}".format
    claim = (
        "INSERT INTO audit_log (id, at, actor, verb, table_name, columns, rows) VALUES "
        "('{}', '{}', 'credential:{}', 'claim', 'access_requests', 'claim_digest', 1)"
    ).format
    request = (
        "INSERT INTO access_requests (id, type, name, purpose, claim_digest, status, "
        "created_at, expires_at, decided_at, credential_id, scopes) VALUES ('{}', 'api_key', 'n', "
        "'p', '{}', '{}', '{}', '2026-05-15T10:00:00.000000Z', '{}', {}, '{}')"
    ).format
    all_scopes, harmless = "posts:read leads:read", "posts:read mcp"
    former = (
        "INSERT INTO former_rows (id, audit_id, table_name, row_id, created_at) VALUES "
        "('{}', '{}', 'access_requests', '{}', '{}')"
    ).format
    return [
        key(numbered(1), "owner", f"{1:064}", at(1), "NULL", "NULL"),
        key(numbered(2), "old claim", f"{2:064}", at(2), "NULL", "NULL"),
        key(numbered(3), "claim of late", f"{3:064}", at(3), "NULL", "NULL"),
        key(numbered(4), "rotated", f"{4:064}", at(4), f"'{at(9)}'", f"'{at(5)}'"),
        key(numbered(5), "rotated", f"{5:064}", at(5), "NULL", f"'{at(6)}'"),
        key(numbered(6), "rotated", f"{6:064}", at(6), "NULL", "NULL"),
        key(numbered(7), "another", f"{7:064}", at(6), "NULL", "NULL"),
        key(numbered(8), "ends", f"{8:064}", at(8), f"'{at(9)}'", "NULL"),
        *(claim(numbered(20 + number), at(number), numbered(number)) for number in (2, 4, 8)),
        request(numbered(30), f"{30:064}", "claimed", at(1), at(2), f"'{numbered(3)}'", all_scopes),
        request(numbered(31), f"{31:064}", "approved", at(1), at(123456), "NULL", harmless),
        request(numbered(32), f"{32:064}", "denied", at(1), at(2), "NULL", all_scopes),
        request(numbered(33), f"{33:064}", "approved", at(1), at(123456), "NULL", all_scopes),
        former(numbered(40), numbered(41), numbered(31), at(1)),
    ]


async def check_upgraded(store: Store) -> None:
    """Check which keys are marked, when what was approved ends, and that no undo is left."""
    credentials, requests = await store.run(Read(CREDENTIALS), Read(ACCESS_REQUESTS))
    marked = sorted(row["id"][-1] for row in credentials.rows if row["needs_review"])
    # 4 and 8 end by themselves; 5 and 6 came of 4 by rotation; 7 only has the same instant.
    assert marked == ["2", "3", "5", "6"]
    ends = {row["status"]: (row["id"][-2:], row["credential_expires_at"]) for row in requests.rows}
    # What was approved with more than posts, and not fetched yet, waits for a decision again.
    assert ends == {
        "claimed": ("30", None),
        "approved": ("31", "2026-07-30T10:00:00.123456Z"),
        "denied": ("32", None),
        "pending": ("33", None),
    }
    named, _, _ = await Keys(store, store_clock).find_unreviewed()
    assert {row["name"] for row in named} == {"old claim", "claim of late", "rotated"}


async def test_an_upgrade_marks_what_requests_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the audit log where the request is gone, and by the request; with their successors."""
    path = tmp_path / "edge.db"
    with monkeypatch.context() as former:
        former.setattr(opening, "MIGRATIONS", MIGRATIONS[:FORMER_SCHEMA])
        opening.create_file(path)
        opening.migrate(path, format_instant(store_clock()))
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in rows_of_the_former_schema():
            connection.execute(statement)
    store = await open_store(path, store_clock)
    try:
        await check_upgraded(store)
    finally:
        await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM former_rows").fetchone() == (0,)
        # The former version goes on until its restart: what it makes is looked at as well.
        made = rows_of_the_former_schema()[0].replace("-000000000001'", "-000000000009'")
        connection.execute(made.replace(f"{1:064}", f"{9:064}"))
        marked = "SELECT needs_review FROM credentials WHERE id LIKE '%-000000000009'"
        assert connection.execute(marked).fetchone() == (1,)


@pytest.mark.size("test")
async def test_an_upgrade_marks_the_same_on_postgresql(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 9 does there what it does in a file."""
    from edge_api.db.postgres import engine as server  # noqa: PLC0415  slow, and not for quick runs

    name = postgresql.make_empty()
    url = postgresql.url(name)
    with monkeypatch.context() as former:
        former.setattr(server, "MIGRATIONS", MIGRATIONS[:FORMER_SCHEMA])
        await (await server.open_store(url, store_clock)).close()
    for statement in rows_of_the_former_schema():
        postgresql.execute(statement.replace("INTO ", "INTO fore_edge.", 1), name)
    store = await server.open_store(url, store_clock)
    try:
        await check_upgraded(store)
    finally:
        await store.close()
        postgresql.drop(url)


@pytest.fixture
def filed(tmp_path: Path) -> Callable[..., str]:
    """Return what files a request in the store of the commands, and gives back its id."""

    async def file(changes: dict[str, Any]) -> str:
        store = await open_store(tmp_path / "edge.db", system_clock)
        try:
            limiter = Limiter(read_settings({"RATE_LEADS": "0"}, dotenv=None))
            requests = AccessRequests(store, system_clock, limiter, SECRET)
            return str((await requests.submit(order(**changes), "x")).row["id"])
        finally:
            await store.close()

    return lambda **changes: asyncio.run(file(changes))


def test_the_command_gives_posts_and_says_so(
    filed: Callable[..., str], run_command: Callable[..., Any]
) -> None:
    """More only by name; the end is a day, none, or in 90 days; faults change nothing."""
    usual, named, token = filed(scopes=ALL), filed(scopes=ALL), filed(type="access_token")
    approved = run_command("requests", "approve", usual)
    assert approved.out.startswith(f"{usual} is approved with posts:read; its claim token")
    assert "to grant more, name the scopes with --scopes" in approved.out
    for words in (
        ("--expires", "2020-01-01"),
        ("--expires", "soon"),
        ("--expires", "2999-01-01", "--no-expiry"),
        ("--scopes", "leads:raed"),
    ):
        assert run_command("requests", "approve", named, *words).code == 2
    assert run_command("requests", "approve", token, "--no-expiry").code == 2
    listed = json.loads(run_command("requests", "list", "--json").out)
    assert [each["status"] for each in listed] == ["pending", "pending", "approved"]

    words = ("--scopes", "posts:read leads:read", "--no-expiry")
    more = run_command("requests", "approve", named, *words)
    assert more.out.startswith(f"{named} is approved with posts:read leads:read; its claim token")
    assert more.out.endswith("and that ends never\n")
    day = run_command("requests", "approve", token, "--expires", "2999-01-01")
    assert "is approved with posts:read mcp" in day.out
    assert "and that ends 2999-01-01T00:00\n" in day.out


def test_the_command_ends_keys(run_command: Callable[..., Any], tmp_path: Path) -> None:
    """In 90 days, on a day, or never; a day in the past is refused."""
    made = json.loads(run_command("keys", "issue", "--name", "a", "--json").out)["id"]
    with closing(sqlite3.connect(tmp_path / "edge.db")) as connection, connection:
        connection.execute("UPDATE credentials SET needs_review = 1")
    past = run_command("keys", "expire", made, "--expires", "2020-01-01")
    assert (past.code, past.err) == (2, "expires: must be in the future\n")
    (row,) = json.loads(run_command("keys", "list", "--json").out)
    assert (row["expires_at"], row["needs_review"]) == (None, 1)
    assert run_command("keys", "expire", made, "--no-expiry").out == f"{made} ends never\n"
    (row,) = json.loads(run_command("keys", "list", "--json").out)
    assert (row["expires_at"], row["needs_review"]) == (None, 0)
    on = run_command("keys", "expire", made, "--expires", "2999-01-01")
    assert on.out == f"{made} ends 2999-01-01T00:00\n"
    assert run_command("keys", "expire", made).code == 0
    (row,) = json.loads(run_command("keys", "list", "--json").out)
    assert row["expires_at"] < "2999"
    run_command("keys", "revoke", made)
    again = run_command("keys", "expire", made)
    assert (again.code, again.err) == (1, f"The key {made} is revoked already\n")
