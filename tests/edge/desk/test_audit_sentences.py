"""The audit log and notices in sentences: each verb has one, which says what and by whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import edge_api
from edge_api.auth.actor import ANYONE, OPERATOR, SERVICE, audit_entry
from edge_api.db.internal_tables import DESK_LINKS, EMAIL_OUTBOX, OAUTH_CLIENTS
from edge_api.db.query import Filter, Insert, Update
from edge_api.db.table import Table
from edge_api.db.tables import AUDIT_LOG, LEAD_MESSAGES, LEADS, TABLES
from edge_api.db.types import format_instant
from edge_api.desk.audit_sentences import ROW_NOUNS, SENTENCES, TABLE_SENTENCES, write_sentence
from tests.edge.conftest import EdgeMaker
from tests.edge.desk.conftest import Browser
from tests.edge.desk.test_actions import ask_for_access
from tests.edge.desk.test_doors import MAIL, owner_by_link
from tests.edge.domain.conftest import MovableClock
from tests.edge.store.samples import make_row

each_engine = pytest.mark.each_engine
ENTRIES = {"audit_entry": 1, "audited": 1, "_audit": 0, "_run": 0, "_write": 0, "_decide": 1}
"""Functions that write an entry, and the place of the verb among their arguments."""
ENTRIES |= {"change": 1}


def verbs() -> Iterator[tuple[str, str]]:
    """Yield each verb that the source hands to what writes entries, with its place."""
    for file in Path(edge_api.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                named = node.func
                name = named.attr if isinstance(named, ast.Attribute) else ast.unparse(named)
                place = ENTRIES.get(name, len(node.args))
                for each in ast.walk(ast.Tuple(node.args[place : place + 1])):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, f"{file.name}:{node.lineno}"
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "verb":
                for each in ast.walk(node.value):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, f"{file.name}:{node.lineno}"


def test_each_verb_of_the_source_has_a_sentence() -> None:
    """Else the owner reads a verb of the database; and each table has a name that people use."""
    known = SENTENCES.keys() | {verb for _, verb in TABLE_SENTENCES}
    found = list(verbs())
    assert {"issue", "revoke", "trap", "file", "retry", "delete", "sign in"} <= {
        v for v, _ in found
    }
    assert {verb: place for verb, place in found if verb not in known} == {}
    assert TABLES.keys() - ROW_NOUNS.keys() == set()


def test_no_sentence_shows_its_pattern() -> None:
    """For none, one and many rows of each table."""
    for table in TABLES:
        for verb in SENTENCES.keys() | {verb for _, verb in TABLE_SENTENCES}:
            for number, word in ((0, ""), (1, ""), (1234, "1,234")):
                entry = {"table_name": table, "verb": verb, "rows": number}
                said = str(write_sentence(entry, ()))
                assert said[0].isupper() or said[0].isdigit(), said
                assert "{" not in said
                assert "_" not in said
                assert word in said or (table, verb) in TABLE_SENTENCES


async def said(owner: Browser, table: str = "") -> list[str]:
    """Return the sentences of the audit page, newest first; of one table, if it is chosen."""
    found = (await owner.get(f"/desk/audit/?table={table}")).tree.css(".audit li > span")
    return [each.text().partition(" · ")[0] for each in found]


@each_engine
async def test_an_action_is_described_with_its_undo(owner: Browser) -> None:
    """The notice has the undo, the undo has the redo, and nobody meets two buttons of one name."""
    leads = [await owner.lead(name=f"n{n}", email=f"n{n}@example.org") for n in range(11)]
    form = {"id": [each["id"] for each in leads], "status": "spam"}
    done = await owner.post("/desk/leads/mark/", **form)
    shown = await owner.get(done.to)
    assert shown.one(".notice p").text() == "11 messages marked as spam"
    assert shown.one(".notice button").text() == "Undo"
    path = str(shown.one(".notice form").attributes["action"])
    undone = await owner.get((await owner.post(path)).to)
    assert undone.one(".notice p").text() == "A change of 11 messages was undone"
    assert undone.one(".notice button").text() == "Redo"
    path = str(undone.one(".notice form").attributes["action"])
    again = await owner.get((await owner.post(path)).to)
    assert {row["status"] for row in await owner.rows(LEADS)} == {"spam"}
    assert again.one(".notice button").text() == "Redo"
    buttons = [each.text() for each in again.tree.css(".audit button")]
    assert buttons == ["Redo"]


@each_engine
async def test_a_message_is_named(owner: Browser) -> None:
    """By the name of its sender, as text; by the address where that is blank."""
    lead = await owner.lead(name="<b>Ann")
    await owner.post("/desk/leads/mark/", id=lead["id"], status="contacted")
    undo = (await owner.get("/desk/audit/")).one(".audit form").attributes["action"]
    await owner.post(str(undo))
    row = f"/desk/tables/leads/{lead['id']}/"
    await owner.post(row, budget_tier="large", **{"was.budget_tier": "b"})
    await owner.post(f"{row}delete/")
    assert (await said(owner))[:4] == [
        "The message of <b>Ann was deleted, by you",
        "The message of <b>Ann was changed, by you",
        "The message of <b>Ann marked as new again, by you",
        "A message was changed, by you",  # which was undone, so that its rows are kept no more
    ]


@each_engine
async def test_a_chosen_table_widens_no_audit_log(owner: Browser) -> None:
    """A key for some tables reads no entry of another, whichever table its page asks for."""
    lead = await owner.lead()
    await owner.post("/desk/leads/mark/", id=lead["id"], status="contacted")
    for table, entries in ("leads", 1), ("suppressed_emails", 0):
        key = await owner.edge.key("admin:read", tables=(table,))
        helper = await Browser(owner.edge).sign_in(key)
        assert len(await said(helper, "leads")) == entries


@each_engine
async def test_an_erased_person_is_not_named(owner: Browser) -> None:
    """Earlier sentences about them have no name either."""
    lead = await owner.lead()
    await owner.post("/desk/leads/mark/", id=lead["id"], status="contacted")
    await owner.post(f"/desk/leads/{lead['id']}/erase/", sure="yes")
    expected = {"A message of a person was erased, by you", "A message was changed, by you"}
    assert expected <= {*await said(owner)}
    assert "Ann" not in (await owner.get("/desk/audit/")).text


@each_engine
async def test_keys_and_requests_are_named(make_edge: EdgeMaker) -> None:
    """The key that was issued, rotated and revoked, though its entry has no id of it."""
    async with make_edge(MovableClock(), **MAIL) as edge:
        owner = await owner_by_link(edge)
        edge.service.clock.move(seconds=1)
        once = "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"
        form = {"name": "Lena's app", "scope": ["posts:read", "admin:read"], "once": once}
        await owner.post("/desk/access/keys/", **form)
        for verb in ("rotate", "revoke"):
            edge.service.clock.move(seconds=1)
            await owner.post(f"/desk/access/keys/{once}/{verb}/")
        edge.service.clock.move(seconds=1)
        asked = await ask_for_access(edge)
        edge.service.clock.move(seconds=1)
        await owner.post(f"/desk/access/requests/{asked}/deny/")
        assert (await said(owner))[:5] == [
            "The request of Bot for access was denied, by you",
            "A request for access was filed, by a visitor",
            "The key Lena's app was revoked, by you",
            "The key Lena's app was given another secret, by you",
            "The key Lena's app was issued, by you",
        ]


@each_engine
async def test_actors_are_words(owner: Browser) -> None:
    """Also apps that act for a key, and what has no name any more."""
    store, clock = owner.edge.service.store, owner.edge.service.clock
    named = {"id": "https://app.example/", "name": "Reader", "kind": "document"}
    lists = dict.fromkeys(("redirect_uris", "grant_types", "scopes"), "x")
    client = make_row(OAUTH_CLIENTS, {**named, **lists})
    await store.run(Insert(OAUTH_CLIENTS, [client]))
    entries = await owner.rows(AUDIT_LOG)
    (key,) = (row["actor"] for row in entries if row["verb"] == "sign in")
    labels = (OPERATOR.label, SERVICE.label, ANYONE.label, "owner", f"{key} client:{client['id']}")
    for label in (*labels, "credential:gone"):
        entry = audit_entry(OPERATOR, "issue", DESK_LINKS, 1, clock())
        await store.run(Insert(entry.table, [{**entry.rows[0], "actor": label}]))
    assert [each.partition(", by ")[2] for each in (await said(owner))[:6]] == [
        "credential:gone",
        "the app Reader for the key test",
        "the owner",
        "a visitor",
        "the service",
        "a command on the server",
    ]


@each_engine
async def test_an_answer_is_said_to_be_sent(owner: Browser) -> None:
    """Until it is claimed it has an undo; a second window that looks later has none."""
    store, now = owner.edge.service.store, owner.edge.service.clock
    lead = await owner.lead(name="Ann <Lee>")
    given = {"lead_id": lead["id"], "kind": "sent", "email": lead["email"], "body": "Yes"}
    message = make_row(LEAD_MESSAGES, given)
    mail = {"id": message["id"], "queue": "transactional", "template_name": "lead_answer"}
    mail |= {"recipient_email": lead["email"], "subject_id": lead["id"]}
    mail |= {"due_at": format_instant(now().replace(year=2999))}
    queued = make_row(EMAIL_OUTBOX, mail)
    await store.run(Insert(LEAD_MESSAGES, [message]), Insert(EMAIL_OUTBOX, [queued]))
    path = f"/desk/leads/?sent={message['id']}"
    shown = await owner.get(path)
    assert shown.one(".notice p").text().startswith("Sent to Ann <Lee> in ")
    undo = f"/desk/leads/answers/{message['id']}/undo/"
    assert shown.one(".notice form").attributes["action"] == undo
    await store.run(Update(EMAIL_OUTBOX, {"lease": "x"}, (Filter("id", "eq", message["id"]),)))
    later = await owner.get(path)
    assert later.one(".notice p").text() == "Sent to Ann <Lee>"
    assert later.tree.css(".notice form") == []
    for wrong in ("x", "%00", "01981a2b-3c4d-7e5f-8a6b-7c8d9e0f1a2b"):
        assert (await owner.get(f"/desk/leads/?sent={wrong}")).tree.css(".notice") == []
    helper = await Browser(owner.edge).sign_in(
        await owner.edge.key("admin:read", tables=("email_send_log",))
    )
    assert "Ann" not in (await helper.get(f"/desk/?sent={message['id']}")).text


def test_tables_are_those_of_the_store() -> None:
    """A name for what no table has would be a slip."""
    assert ROW_NOUNS.keys() - TABLES.keys() == set()
    assert all(isinstance(TABLES[name], Table) for name in ROW_NOUNS)
