import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from edge_api.auth.credentials import Authenticator
from edge_api.auth.keys import Keys, NewKey
from edge_api.auth.secrets import mint
from edge_api.db.problems import Problem
from edge_api.db.types import format_instant
from tests.edge.domain.doors import make_access
from tests.edge.engines import ON_SQLITE, Opener
from tests.patience import patience

SITE = "https://journal.example"
METADATA = f'resource_metadata="{SITE}/.well-known/oauth-protected-resource/api/public/v1"'


@pytest.fixture
def access(watched: Any, clock: Any) -> Authenticator:
    """Return who decides."""
    return make_access(watched, clock)


async def refusal(access: Authenticator, secret: str, audience: Any = "rest") -> Problem:
    """Return the problem that a secret meets."""
    with pytest.raises(Problem) as caught:
        await access.authenticate(secret, audience)
    return caught.value


async def test_a_valid_key_names_its_holder(access: Authenticator, keys: Keys) -> None:
    """Identity, name, scopes and tables are those of the key."""
    order = NewKey("importer", scopes=("admin:read", "admin:write"), tables=("leads",))
    issued = await keys.issue(order)

    actor = await access.authenticate(issued.secret)
    assert actor.credential_id == issued.row["id"]
    assert actor.label == f"credential:{issued.row['id']}"
    assert (actor.name, actor.type) == ("importer", "api_key")
    assert actor.scopes == {"admin:read", "admin:write"}
    assert actor.tables == frozenset({"leads"})


async def test_unknown_expired_and_revoked_keys_get_one_and_the_same_answer(
    access: Authenticator, keys: Keys, clock: Any
) -> None:
    """Nobody learns which keys ever existed."""
    expiring = await keys.issue(NewKey("a", expires_at=format_instant(clock.now.replace(hour=13))))
    revoked = await keys.issue(NewKey("b"))
    await keys.revoke(revoked.row["id"])
    clock.move(hours=1)

    secrets = (mint("api_key"), expiring.secret, revoked.secret, "nonsense", "")
    problems = [await refusal(access, secret) for secret in secrets]
    assert {(p.code, p.status, p.message) for p in problems} == {
        ("unauthenticated", 401, "Missing or invalid credential")
    }
    assert {p.headers["WWW-Authenticate"] for p in problems} == {
        f'Bearer realm="api", error="invalid_token", {METADATA}'
    }


async def test_no_credential_is_no_error(access: Authenticator) -> None:
    """The challenge of a request without a credential has no error code (RFC 6750, 3.1)."""
    problem = access.missing_credential()

    assert problem.message == "Missing or invalid credential"
    assert dict(problem.headers) == {"WWW-Authenticate": f'Bearer realm="api", {METADATA}'}


async def test_a_missing_scope_is_named(access: Authenticator, keys: Keys) -> None:
    """403, and the challenge says which scope is needed."""
    actor = await access.authenticate((await keys.issue(NewKey("a", scopes=("mcp",)))).secret)
    access.authorise(actor, "mcp")

    with pytest.raises(Problem) as caught:
        access.authorise(actor, "leads:write")
    assert (caught.value.status, caught.value.message) == (
        403,
        "The credential lacks the scope leads:write",
    )
    assert dict(caught.value.headers) == {
        "WWW-Authenticate": 'Bearer realm="api", error="insufficient_scope", '
        f'scope="leads:write", {METADATA}'
    }


async def test_a_malformed_key_is_refused_without_looking(
    access: Authenticator, watched: Any
) -> None:
    """Shape, checksum and kind are seen on the secret itself."""
    for secret in ("", "x", mint("api_key")[:-1], mint("access_token"), mint("client_secret")):
        await refusal(access, secret)

    assert watched.runs == 0


async def test_an_access_token_is_for_mcp_alone(access: Authenticator, keys: Keys) -> None:
    """In place of an API key it is invalid, before and after it was used as a token."""
    token = (await keys.issue(NewKey("a", type="access_token"))).secret

    await refusal(access, token)
    assert (await access.authenticate(token, "mcp")).type == "access_token"
    await refusal(access, token)


async def test_a_key_is_read_once_while_the_store_is_unchanged(
    access: Authenticator, keys: Keys, watched: Any
) -> None:
    """A thousand requests cost one read."""
    secret = (await keys.issue(NewKey("a"))).secret
    for _ in range(1000):
        await access.authenticate(secret)

    assert watched.runs == 1


async def test_many_requests_after_a_change_share_one_read(
    access: Authenticator, keys: Keys, watched: Any
) -> None:
    """Those that come while the answer is under way wait for it."""
    secret = (await keys.issue(NewKey("a"))).secret
    actors = await asyncio.gather(*(access.authenticate(secret) for _ in range(64)))

    assert watched.runs == 1
    assert len({actor.credential_id for actor in actors}) == 1


async def test_a_cancelled_caller_does_not_cancel_the_shared_read(
    access: Authenticator, keys: Keys
) -> None:
    """The first of many is cancelled; the others get their answer."""
    secret = (await keys.issue(NewKey("a"))).secret
    first, second = (asyncio.create_task(access.authenticate(secret)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert (await second).name == "a"
    assert first.cancelled() or first.cancelling()


async def test_a_revocation_counts_from_the_next_request_on(
    access: Authenticator, keys: Keys
) -> None:
    """The cached row of the key is read again."""
    issued = await keys.issue(NewKey("a"))
    await access.authenticate(issued.secret)
    await keys.revoke(issued.row["id"])

    assert (await refusal(access, issued.secret)).code == "unauthenticated"


async def test_an_expiry_counts_although_nothing_changes(
    access: Authenticator, keys: Keys, clock: Any
) -> None:
    """The instant itself is already too late."""
    end = format_instant(clock.now.replace(hour=13))
    secret = (await keys.issue(NewKey("a", expires_at=end))).secret
    clock.move(minutes=59, seconds=59)
    await access.authenticate(secret)
    clock.move(seconds=1)

    assert (await refusal(access, secret)).code == "unauthenticated"


async def test_a_key_works_on_for_half_a_second_while_the_store_is_away(
    access: Authenticator, keys: Keys, watched: Any, clock: Any
) -> None:
    """After that nobody can say that it was not revoked: 503."""
    secret = (await keys.issue(NewKey("a"))).secret
    await access.authenticate(secret)
    watched.away = True

    clock.move(seconds=0.3)
    assert (await access.authenticate(secret)).name == "a"
    clock.move(seconds=0.19)
    assert (await access.authenticate(secret)).name == "a"
    clock.move(seconds=0.01)
    assert (await refusal(access, secret)).code == "unavailable"
    watched.away = False
    assert (await access.authenticate(secret)).name == "a"


async def test_an_unknown_key_cannot_be_judged_while_the_store_is_away(
    access: Authenticator, watched: Any
) -> None:
    """It is 503 from the first request on; a malformed one stays 401."""
    watched.away = True

    assert (await refusal(access, mint("api_key"))).code == "unavailable"
    assert (await refusal(access, "nonsense")).code == "unauthenticated"


async def test_a_failed_read_without_callers_logs_nothing(
    access: Authenticator, keys: Keys, watched: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is logged about an exception that nobody took."""
    secret = (await keys.issue(NewKey("a"))).secret
    asking = asyncio.create_task(access.authenticate(secret))
    await asyncio.sleep(0)
    asking.cancel()
    watched.away = True
    await asyncio.wait([asking])
    await asyncio.sleep(0.05)
    del asking
    gc.collect()

    assert watched.runs == 1
    assert caplog.records == []


async def test_the_last_use_is_written_in_batches(
    access: Authenticator, keys: Keys, watched: Any, clock: Any
) -> None:
    """Two keys, many uses, one transaction, which stores the latest use of each."""
    issued = [await keys.issue(NewKey(name)) for name in ("a", "b", "unused")]
    for key in issued[:2]:
        for _ in range(10):
            clock.move(seconds=1)
            await access.authenticate(key.secret)
    watched.runs = 0
    await access.flush()
    await access.flush()

    used = {row["name"]: row["last_used_at"] for row in await keys.all()}
    assert watched.runs == 1
    assert used == {
        "a": "2026-06-01T12:00:10.000000Z",
        "b": "2026-06-01T12:00:20.000000Z",
        "unused": None,
    }


async def test_a_use_that_cannot_be_written_is_kept_for_later(
    access: Authenticator, keys: Keys, watched: Any
) -> None:
    """Writing it down never fails anybody."""
    secret = (await keys.issue(NewKey("a"))).secret
    await access.authenticate(secret)
    watched.away = True
    await access.flush()
    watched.away = False
    await access.flush()

    assert [row["last_used_at"] for row in await keys.all()] == ["2026-06-01T12:00:00.000000Z"]


@ON_SQLITE
async def test_another_process_revokes_a_key(
    access: Authenticator, keys: Keys, run_process: Callable[..., Any]
) -> None:
    """The command line ends a key that a running edge remembers."""
    issued = await keys.issue(NewKey("a"))
    await access.authenticate(issued.secret)
    await asyncio.to_thread(run_process, "keys", "revoke", issued.row["id"])

    assert (await refusal(access, issued.secret)).code == "unauthenticated"


async def test_another_edge_revokes_a_key(
    access: Authenticator, keys: Keys, open_another: Opener, clock: Any
) -> None:
    """An edge that remembers a key refuses it soon, whatever the engine.

    How soon is shown where nothing else runs: tests/drills/test_machines.py.
    """
    issued = await keys.issue(NewKey("a"))
    await access.authenticate(issued.secret)
    await Keys(await open_another(), clock).revoke(issued.row["id"])
    with pytest.raises(Problem) as caught:
        await use_for_a_minute(access, issued.secret)

    assert caught.value.code == "unauthenticated"


async def use_for_a_minute(access: Authenticator, secret: str) -> None:
    """Use a secret again and again; raise Problem as soon as it is refused."""
    deadline = time.monotonic() + patience()
    while time.monotonic() < deadline:
        await access.authenticate(secret)
        await asyncio.sleep(0.01)
