import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from edge_api.auth.actor import recent_entries
from edge_api.auth.credentials import Authenticator
from edge_api.auth.keys import KEY_ROTATION_OVERLAP, IssuedKey, Keys, NewKey, key_state
from edge_api.auth.secrets import hash_secret, is_well_formed
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Query, QueryResult, Store, Update
from edge_api.db.tables import CREDENTIALS
from edge_api.db.types import format_instant
from tests.edge.domain.doors import make_access
from tests.edge.engines import ON_SQLITE

NOBODY = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"


class LateStore:
    """A real store in which somebody else is quicker: `act` comes before the first change."""

    def __init__(self, store: Store, act: Callable[[str], Awaitable[Any]]) -> None:
        self._store = store
        self.version_is_exact = store.version_is_exact
        self._act = act
        self.version, self.probe = store.version, store.probe
        self.scrub, self.close = store.scrub, store.close

    async def run(self, *plans: Query) -> list[QueryResult]:
        """Pass the plans on; before those that change a key, let the other one go first."""
        changed = [str(plan.where[0].value) for plan in plans if isinstance(plan, Update)]
        if changed:
            await self._act(changed[0])
        return await self._store.run(*plans)


@pytest.fixture
def access(store: Store, clock: Any) -> Authenticator:
    """Return who decides about the keys."""
    return make_access(store, clock)


async def problem_of(keys: Keys, order: NewKey) -> str:
    """Return what is wrong with an order."""
    with pytest.raises(Problem) as caught:
        await keys.issue(order)
    assert caught.value.code == "invalid"
    assert await keys.all() == []
    return caught.value.message


async def row_of(keys: Keys, issued: IssuedKey) -> dict[str, Any]:
    """Return what the store has of a key."""
    return next(row for row in await keys.all() if row["id"] == issued.row["id"])


async def test_a_new_key_may_use_the_published_api_and_never_ends(keys: Keys) -> None:
    """That is what a key gets whose issuer says nothing more."""
    issued = await keys.issue(NewKey("client"))

    assert is_well_formed(issued.secret, "api_key")
    assert issued.row["scopes"] == "posts:read leads:read leads:write"
    assert issued.row["tables"] is None
    assert issued.row["expires_at"] is None


async def test_a_new_access_token_is_for_mcp_and_ends_after_90_days(keys: Keys) -> None:
    """Unless its issuer names another end."""
    token = await keys.issue(NewKey("agent", type="access_token"))
    brief = await keys.issue(
        NewKey("agent", type="access_token", expires_at="2026-06-02T00:00:00.000000Z")
    )

    assert is_well_formed(token.secret, "access_token")
    assert token.row["scopes"] == "mcp posts:read leads:read leads:write"
    assert token.row["expires_at"] == "2026-08-30T12:00:00.000000Z"
    assert brief.row["expires_at"] == "2026-06-02T00:00:00.000000Z"


@ON_SQLITE
async def test_the_secret_is_kept_nowhere(keys: Keys, tmp_path: Any) -> None:
    """Neither the rows nor the files of the store hold it; its digest and its end they do."""
    issued = await keys.issue(NewKey("client"))

    (row,) = await keys.all()
    assert row["digest"] == hash_secret(issued.secret)
    assert row["last_four"] == issued.secret[-4:]
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert any(row["digest"].encode() in file for file in files)
    assert not any(issued.secret.encode() in file for file in files)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (NewKey(""), "name: must have 1 character or more"),
        (NewKey("x" * 101), "name: must have 100 characters or fewer"),
        (
            NewKey("a", scopes=("posts:read", "posts:write")),
            (
                "scopes: there is no scope 'posts:write'; there are posts:read, posts:draft, "
                "posts:publish, leads:read, leads:write, admin:read, admin:write, mail:send, "
                "subscribers:write, stats:read, metrics:read, mcp"
            ),
        ),
        (
            NewKey("a", scopes=("posts:publish", "admin:read")),
            (
                "A key that can both publish and read enquiries also needs publish-with-enquiries: "
                "a stranger's enquiry could tell the agent what to publish"
            ),
        ),
        (
            NewKey("a", tables=("credentials",)),
            (
                "tables: there is no table 'credentials'; there are leads, email_send_log, "
                "email_send_state, email_unsubscribe_tokens, suppressed_emails"
            ),
        ),
        (
            NewKey("a", expires_at="2026-06-01T12:00:00.000000Z"),
            "expires: must be in the future",
        ),
    ],
)
async def test_a_faulty_order_makes_no_key(keys: Keys, order: NewKey, message: str) -> None:
    """The error names the fault, with the valid values."""
    assert await problem_of(keys, order) == message


async def test_a_rotated_key_works_for_seven_days_beside_its_successor(
    keys: Keys, access: Authenticator, clock: Any
) -> None:
    """Name, scopes and tables are handed on."""
    old = await keys.issue(NewKey("client", scopes=("admin:read",), tables=("leads",)))
    new = await keys.rotate(old.row["id"])

    assert new.secret != old.secret
    same = ("name", "type", "scopes", "tables", "expires_at")
    assert {name: new.row[name] for name in same} == {name: old.row[name] for name in same}
    clock.move(days=6, hours=23)
    assert (await access.authenticate(old.secret)).credential_id == old.row["id"]
    clock.move(hours=1)
    assert (await access.authenticate(new.secret)).credential_id == new.row["id"]
    with pytest.raises(Problem):
        await access.authenticate(old.secret)


async def test_a_key_is_rotated_once_however_many_ask_at_once(keys: Keys) -> None:
    """One of several concurrent callers gets the successor, and no other is made."""
    old = await keys.issue(NewKey("client"))

    outcomes = await asyncio.gather(
        *(keys.rotate(old.row["id"]) for _ in range(5)), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IssuedKey", *["Problem"] * 4]
    assert len(await keys.all()) == 2


@pytest.mark.parametrize(
    ("verb", "left"), [("revoke", ["revoked"]), ("rotate", ["rotated", "valid"])]
)
async def test_a_key_that_ends_meanwhile_gets_no_successor(
    keys: Keys, store: Store, clock: Any, verb: str, left: list[str]
) -> None:
    """Both saw a valid key; the second to write is refused whole, its audit entry with it."""
    old = await keys.issue(NewKey("client"))
    late = Keys(LateStore(store, getattr(keys, verb)), clock)

    with pytest.raises(Problem) as caught:
        await late.rotate(old.row["id"])

    assert caught.value.code == "conflict"
    states = [key_state(row, format_instant(clock())) for row in await keys.all()]
    assert sorted(states) == left
    assert {entry["verb"] for entry in await recent_entries(store, 5)} == {"issue", verb}
    assert len(await recent_entries(store, 5)) == 2


async def test_an_access_token_is_for_mcp_whatever_else_it_may_do(keys: Keys) -> None:
    """One without that scope would open nothing."""
    with pytest.raises(Problem, match="needs the scope mcp"):
        await keys.issue(NewKey("agent", type="access_token", scopes=("posts:read",)))


async def test_rotation_never_lengthens_a_life(keys: Keys) -> None:
    """A key that would have ended earlier does, and its successor ends when it would have."""
    end = "2026-06-03T00:00:00.000000Z"
    old = await keys.issue(NewKey("client", expires_at=end))
    new = await keys.rotate(old.row["id"])

    assert (await row_of(keys, old))["expires_at"] == end
    assert new.row["expires_at"] == end


async def test_a_rotated_key_with_a_later_end_ends_after_seven_days(keys: Keys, clock: Any) -> None:
    """Its successor keeps the later end."""
    end = "2027-06-03T00:00:00.000000Z"
    old = await keys.issue(NewKey("client", expires_at=end))
    new = await keys.rotate(old.row["id"])

    assert (await row_of(keys, old))["expires_at"] == format_instant(clock() + KEY_ROTATION_OVERLAP)
    assert new.row["expires_at"] == end


async def test_a_rotation_by_a_former_version_is_taken_back(
    keys: Keys, store: Store, clock: Any
) -> None:
    """It did not keep the end of the old key, which its successor has."""
    ends = (format_instant(clock() + timedelta(days=60)), None)
    for end in ends:
        old = await keys.issue(NewKey(f"until {end}", expires_at=end))
        await keys.rotate(old.row["id"])
        here = (Filter("id", "eq", old.row["id"]),)
        await store.run(Update(CREDENTIALS, {"former_expires_at": None}, here))
        await keys.take_back(old.row["id"])
        row = await row_of(keys, old)
        assert (row["expires_at"], row["rotated_at"]) == (end, None)


async def test_a_rotated_access_token_starts_a_new_life(keys: Keys, clock: Any) -> None:
    """90 days from the rotation on."""
    old = await keys.issue(NewKey("agent", type="access_token"))
    clock.move(days=80)
    new = await keys.rotate(old.row["id"])

    assert new.row["expires_at"] == format_instant(clock.now.replace(month=11, day=18))


async def test_only_a_valid_key_is_rotated(keys: Keys, clock: Any) -> None:
    """A rotated, an expired and a revoked one are refused, and nothing is issued for them."""
    rotated, expired, revoked = [
        (await keys.issue(NewKey(name, expires_at=end))).row["id"]
        for name, end in (("a", None), ("b", "2026-06-01T12:30:00.000000Z"), ("c", None))
    ]
    await keys.rotate(rotated)
    await keys.revoke(revoked)
    clock.move(hours=1)
    count = len(await keys.all())

    for key_id, state in ((rotated, "rotated"), (expired, "expired"), (revoked, "revoked")):
        with pytest.raises(Problem) as caught:
            await keys.rotate(key_id)
        assert caught.value.code == "conflict"
        assert caught.value.message == f"The key {key_id} is {state}: issue a new one"
    assert len(await keys.all()) == count


async def test_a_key_is_revoked_once(keys: Keys, clock: Any) -> None:
    """Doing it again is fine and keeps the first instant."""
    issued = await keys.issue(NewKey("client"))
    await keys.revoke(issued.row["id"])
    first = await row_of(keys, issued)
    clock.move(hours=1)
    await keys.revoke(issued.row["id"])

    assert first["revoked_at"] == "2026-06-01T12:00:00.000000Z"
    assert await row_of(keys, issued) == first


@pytest.mark.parametrize("key_id", [NOBODY, "nonsense", ""])
async def test_a_key_that_is_not_there_is_not_found(keys: Keys, key_id: str) -> None:
    """Neither rotated nor revoked."""
    for act in (keys.rotate, keys.revoke):
        with pytest.raises(Problem) as caught:
            await act(key_id)
        assert caught.value.code == "not_found"
        assert caught.value.message == f"There is no key {key_id}"


async def test_every_change_of_a_key_is_in_the_audit_log(
    keys: Keys, store: Store, clock: Any
) -> None:
    """Newest first: what the operator did, and to how many rows."""
    issued = await keys.issue(NewKey("client"))
    clock.move(seconds=1)
    await keys.rotate(issued.row["id"])
    for _ in range(2):
        clock.move(seconds=1)
        await keys.revoke(issued.row["id"])

    entries = await recent_entries(store, 3)
    said = ("actor", "verb", "table_name", "columns", "rows", "at")
    assert [tuple(entry[name] for name in said) for entry in entries] == [
        ("credential:operator", "revoke", "credentials", "id", 0, "2026-06-01T12:00:03.000000Z"),
        ("credential:operator", "revoke", "credentials", "id", 1, "2026-06-01T12:00:02.000000Z"),
        ("credential:operator", "rotate", "credentials", "id", 1, "2026-06-01T12:00:01.000000Z"),
    ]


async def test_a_valid_key_allows_its_scopes(keys: Keys, clock: Any) -> None:
    """Not more, not for an unknown secret, and not once it has ended."""
    issued = await keys.issue(
        NewKey("client", scopes=("mcp",), expires_at="2026-06-01T13:00:00.000000Z")
    )

    assert await keys.allows(issued.secret, frozenset({"mcp"}))
    assert not await keys.allows(issued.secret, frozenset({"mcp", "posts:read"}))
    assert not await keys.allows("nonsense", frozenset())
    clock.move(hours=1)
    assert not await keys.allows(issued.secret, frozenset({"mcp"}))


def test_a_revoked_key_is_revoked_whatever_else_it_is() -> None:
    """The four states exclude one another."""
    past, now, future = "2026-01-01", "2026-06-01", "2026-12-01"

    def state(expires: str | None, revoked: str | None, rotated: str | None) -> str:
        row = {"expires_at": expires, "revoked_at": revoked, "rotated_at": rotated}
        return key_state(row, now)

    assert state(None, None, None) == state(future, None, None) == "valid"
    assert state(future, None, past) == "rotated"
    assert state(past, None, past) == state(now, None, None) == "expired"
    assert state(past, past, past) == "revoked"


def test_the_command_prints_a_key_once(run_command: Callable[..., Any]) -> None:
    """The key alone on the standard output, so that it can be piped; the rest beside it."""
    issued = run_command("keys", "issue", "--name", "my client")

    assert issued.code == 0
    assert is_well_formed(issued.out.strip(), "api_key")
    assert "scopes posts:read leads:read leads:write, expires never" in issued.err


def test_the_command_issues_with_all_options(run_command: Callable[..., Any]) -> None:
    """Scopes, tables, end and type; as one JSON object."""
    issued = run_command(
        "keys",
        "issue",
        "--name",
        "Zoë",
        "--scopes",
        "admin:read admin:write",
        "--json",
        "--tables",
        "leads,suppressed_emails",
        "--expires",
        "2999-01-31",
    )
    token = run_command("keys", "issue", "--name", "agent", "--type", "access_token", "--json")

    printed = json.loads(issued.out)
    assert is_well_formed(printed.pop("key"), "api_key")
    assert printed == {
        "id": printed["id"],
        "name": "Zoë",
        "type": "api_key",
        "expires_at": "2999-01-31T00:00:00.000000Z",
        "scopes": ["admin:read", "admin:write"],
        "tables": ["leads", "suppressed_emails"],
    }
    assert is_well_formed(json.loads(token.out)["key"], "access_token")


def test_the_command_lists_rotates_and_revokes(run_command: Callable[..., Any]) -> None:
    """A life of a key at the terminal."""
    run_command("migrate")
    assert "there are no keys yet" in run_command("keys", "list").out
    first = json.loads(run_command("keys", "issue", "--name", "a", "--json").out)
    second = json.loads(run_command("keys", "rotate", first["id"], "--json").out)
    revoked = run_command("keys", "revoke", second["id"])
    listed = json.loads(run_command("keys", "list", "--json").out)
    table = run_command("keys", "list").out.splitlines()

    assert revoked.out == f"{second['id']} is revoked\n"
    assert {key["id"]: key["state"] for key in listed} == {
        first["id"]: "rotated",
        second["id"]: "revoked",
    }
    assert not any("digest" in key or "key" in key for key in listed)
    assert [line.split()[0] for line in table] == ["ID", second["id"], first["id"]]


def test_escapes_in_a_name_are_neutralized(run_command: Callable[..., Any]) -> None:
    """Control characters show as what they are: unprintable."""
    run_command("keys", "issue", "--name", "a\x1b[31m\nb")
    listed = run_command("keys", "list").out

    assert "a\ufffd[31m\ufffdb" in listed
    assert "\x1b" not in listed


def test_the_command_lists_what_was_changed(run_command: Callable[..., Any]) -> None:
    """One line an entry, or JSON."""
    run_command("migrate")
    assert run_command("audit").out == "nothing was changed yet\n"
    key = json.loads(run_command("keys", "issue", "--name", "a", "--json").out)
    run_command("keys", "revoke", key["id"])
    lines = run_command("audit").out.splitlines()
    newest = json.loads(run_command("audit", "--limit", "1", "--json").out)

    assert [line.split("  ", 1)[1] for line in lines] == [
        "credential:operator  revoke credentials by id: 1 row",
        "credential:operator  issue credentials: 1 row",
    ]
    assert [entry["verb"] for entry in newest] == ["revoke"]


def test_an_unwritable_store_is_reported_in_a_sentence(
    run_command: Callable[..., Any], tmp_path: Path
) -> None:
    """Nothing is printed that looks like a key."""
    run_command("keys", "list")
    with closing(sqlite3.connect(tmp_path / "edge.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = run_command("keys", "issue", "--name", "a")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("keys",), 2, "Commands:"),
        (("keys", "issue"), 2, "Missing option '--name'"),
        (("keys", "issue", "--name", ""), 2, "name: must have 1 character or more"),
        (("keys", "issue", "--name", "a", "--scopes", "read"), 2, "there is no scope 'read'"),
        (("keys", "issue", "--name", "a", "--scopes", " "), 2, "names nothing"),
        (("keys", "issue", "--name", "a", "--tables", "x"), 2, "there is no table 'x'"),
        (("keys", "issue", "--name", "a", "--expires", "soon"), 2, "no date such as 2027-01-31"),
        (("keys", "issue", "--name", "a", "--expires", "2020-01-31"), 2, "be in the future"),
        (
            ("keys", "issue", "--name", "a", "--type", "x"),
            2,
            "'x' is not one of 'api_key'",
        ),
        (("keys", "rotate", NOBODY), 1, f"There is no key {NOBODY}"),
        (("keys", "revoke", "x"), 1, "There is no key x"),
        (("audit", "--limit", "0"), 2, "0 is not in the range 1<=x<=999999"),
        (("audit", "--limit", "x"), 2, "'x' is not a valid integer"),
    ],
)
def test_a_wrong_command_says_what_to_fix(
    run_command: Callable[..., Any], words: tuple[str, ...], code: int, message: str
) -> None:
    """2 for wrong usage, 1 for what is not there; nothing on the standard output."""
    run_command("migrate")
    ended = run_command(*words)

    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err
