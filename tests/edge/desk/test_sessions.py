"""A sign-in beside its key: what a rotation, a revocation or an end of the key does to it."""

from datetime import timedelta

import pytest

from edge_api.auth.actor import system_clock
from edge_api.auth.keys import KEY_ROTATION_OVERLAP, IssuedKey, Keys, NewKey
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.desk.sessions import HIDDEN_FIELD
from edge_api.schema.credentials import PUBLISH_WITH_ENQUIRIES, SCOPES
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser
from tests.edge.domain.conftest import MovableClock

pytestmark = pytest.mark.each_engine
INBOX = "/desk/leads/"
ACCESS = "/desk/access/"


async def issue(edge: RunningEdge, end: str | None = None) -> IssuedKey:
    """Return a new key for everything."""
    keys = Keys(edge.service.store, edge.service.clock)
    return await keys.issue(NewKey("Ann", scopes=(*SCOPES, PUBLISH_WITH_ENQUIRIES), expires_at=end))


def sessions_in(shown: str) -> int:
    """Return how many sessions a page offers to end."""
    return shown.count('action="/desk/access/sessions/')


async def test_a_rotated_key_keeps_its_session_until_it_expires(make_edge: EdgeMaker) -> None:
    """The browser goes on for the seven days of the old key, and is listed as signed in."""
    clock = MovableClock(system_clock())
    async with make_edge(clock) as edge:
        issued = await issue(edge)
        ann = await Browser(edge).sign_in(issued.secret)
        await Keys(edge.service.store, clock).rotate(issued.row["id"])
        clock.move(seconds=KEY_ROTATION_OVERLAP.total_seconds() - 60)
        shown = await ann.get(ACCESS)
        assert (shown.status, sessions_in(shown.text)) == (200, 1)

        clock.move(minutes=1)
        assert (await ann.get(ACCESS)).to.startswith("/desk/sign-in/")


@pytest.mark.parametrize("end", ["revoked", "expired"])
async def test_an_open_form_of_an_ended_key_changes_nothing(make_edge: EdgeMaker, end: str) -> None:
    """What was typed is kept through a sign-in with another key, and is stored then, once."""
    clock = MovableClock(system_clock())
    async with make_edge(clock) as edge:
        issued = await issue(edge, format_instant(clock() + timedelta(hours=1)))
        ann = await Browser(edge).sign_in(issued.secret)
        lead = await ann.lead()
        path = f"{INBOX}{lead['id']}/"
        token = await ann.token()
        if end == "revoked":
            await Keys(edge.service.store, clock).revoke(issued.row["id"])
        else:
            clock.move(hours=1)
        lost = await ann.post(path, notes="typed for an hour", **{"was.notes": ""})
        assert (lost.status, "What you typed is kept" in lost.said) == (401, True)
        assert (await ann.rows(LEADS))[0]["notes"] is None

        hidden = {
            str(each.attributes["name"]): str(each.attributes["value"])
            for each in lost.tree.css('form[action="/desk/sign-in/"] input[type=hidden]')
        }
        resumed = await ann.post("/desk/sign-in/", **hidden, key=(await issue(edge)).secret)
        again = {
            str(each.attributes["name"]): str(each.attributes["value"])
            for each in resumed.one(f'form[action="{path}"]').css("input[type=hidden]")
        }
        stale = await ann.post(path, **{**again, HIDDEN_FIELD: token})
        assert (stale.status, (await ann.rows(LEADS))[0]["notes"]) == (403, None)
        assert (await ann.post(path, **again)).status == 303
        assert (await ann.rows(LEADS))[0]["notes"] == "typed for an hour"


async def test_a_rotated_key_and_its_successor_have_own_sessions(make_edge: EdgeMaker) -> None:
    """Each has a session of its own: the end of one is not that of the other."""
    clock = MovableClock(system_clock())
    async with make_edge(clock) as edge:
        old = await issue(edge)
        first = await Browser(edge).sign_in(old.secret)
        new = await Keys(edge.service.store, clock).rotate(old.row["id"])
        second = await Browser(edge).sign_in(new.secret)
        assert sessions_in((await second.get(ACCESS)).text) == 2

        await Keys(edge.service.store, clock).revoke(old.row["id"])
        assert (await first.get(ACCESS)).status == 303
        shown = await second.get(ACCESS)
        assert (shown.status, sessions_in(shown.text)) == (200, 1)
