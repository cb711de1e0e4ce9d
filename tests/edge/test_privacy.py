"""The rights of a person whose data is kept: all of it shown, and all of it erased."""

import asyncio
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_api import background as background_jobs
from edge_api.__main__ import main
from edge_api.auth.actor import OPERATOR, system_clock
from edge_api.auth.erasure import Privacy, is_within
from edge_api.cli import privacy as command
from edge_api.db.internal_tables import (
    ACCESS_REQUESTS,
    EMAIL_OUTBOX,
    FORMER_ROWS,
    WEBHOOK_DELIVERIES,
    WEBHOOK_ENDPOINTS,
)
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import Filter, Insert, Read, Update
from edge_api.db.sqlite.engine import open_store
from edge_api.db.table import Row, Table
from edge_api.db.tables import (
    AUDIT_LOG,
    EMAIL_SEND_LOG,
    EMAIL_UNSUBSCRIBE_TOKENS,
    IDEMPOTENCY_KEYS,
    LEAD_MESSAGES,
    LEADS,
    SUPPRESSED_EMAILS,
)
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.edge.store.samples import make_lead, make_row
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

ANN = "ann@example.org"
SPELLINGS = (ANN, "Ann@Example.ORG", " ann@example.org ", "Ann Lee <ann@example.org>")
OTHERS = ("joann@example.org", "ann@example.org.test", "ann+edge@example.org", "ann@example.com")
LATER = "2099-01-01T00:00:00.000000Z"
TABLES = (
    LEADS,
    EMAIL_SEND_LOG,
    ACCESS_REQUESTS,
    LEAD_MESSAGES,
    EMAIL_OUTBOX,
    WEBHOOK_DELIVERIES,
    SUBSCRIBERS,
    EMAIL_UNSUBSCRIBE_TOKENS,
    SUPPRESSED_EMAILS,
    IDEMPOTENCY_KEYS,
    FORMER_ROWS,
)
"""The tables with personal data, in the order in which they are shown."""
WORDS = ((True, "Erasable "), (False, "Bystander"))


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """Return a folder with a store of the test's own."""
    settings = {
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "PORT": str(free_port()),
        "RATE_LEADS": "0",
        "RATE_LEADS_ATTEMPTS": "0",
        "RETAIN_UNDO_DAYS": "0",
    }
    return Installation(tmp_path, settings)


def store_rows(installation: Installation, rows: Mapping[Table, list[Row]]) -> None:
    """Put rows into the store, which is made where it is missing."""

    async def put() -> None:
        store = await open_store(installation.store, system_clock)
        try:
            await store.run(*(Insert(table, some) for table, some in rows.items()))
        finally:
            await store.close()

    asyncio.run(put())


def stored(installation: Installation, *tables: Table) -> list[list[Row]]:
    """Return all rows of tables."""

    async def read() -> list[list[Row]]:
        store = await open_store(installation.store, system_clock)
        try:
            return [result.rows for result in await store.run(*(Read(each) for each in tables))]
        finally:
            await store.close()

    return asyncio.run(read())


def make_rows(address: str, mark: str) -> dict[Table, list[Row]]:
    """Return a row of each table about whoever has the address; texts carry the mark."""
    lead = make_row(
        LEADS,
        {"name": mark, "email": address, "budget_tier": "small", "message": f"{mark} asks"},
    )
    endpoint = make_row(WEBHOOK_ENDPOINTS, {"url": f"https://{mark}.test/", "secret": "s"})
    common = {"recipient_email": address, "template_name": "acknowledgement"}
    owner = {"recipient_email": "owner@example.net", "template_name": "notification"}
    answer = {"lead": {"id": lead["id"], "message": f"{mark} asks", "email": address}}
    delivery = {"endpoint_id": endpoint["id"], "event": "lead.created", "subject_id": lead["id"]}
    request = {"type": "api_key", "name": mark, "email": address, "purpose": f"{mark} builds"}
    change = {"audit_id": lead["id"], "table_name": "leads"}
    digests = {"request_digest": mark.ljust(64, "0"), "id": mark.rjust(64, "0")}
    return {
        WEBHOOK_ENDPOINTS: [endpoint],
        LEADS: [lead],
        EMAIL_SEND_LOG: [
            make_row(EMAIL_SEND_LOG, {**common, "status": "pending"}),
            make_row(EMAIL_SEND_LOG, {**owner, "status": "sent", "metadata": {"to": lead["id"]}}),
            make_row(
                EMAIL_SEND_LOG,
                {**owner, "status": "failed", "error_message": f"550 <{address.strip()}>: {mark}"},
            ),
        ],
        LEAD_MESSAGES: [
            make_row(
                LEAD_MESSAGES,
                {
                    "lead_id": lead["id"],
                    "kind": "received",
                    "email": address,
                    "body": f"{mark} thanks",
                    "message_digest": mark.rjust(64, "0"),
                },
            )
        ],
        EMAIL_OUTBOX: [
            make_row(
                EMAIL_OUTBOX,
                {**owner, "queue": "transactional", "subject_id": lead["id"], "lease": mark},
            )
        ],
        WEBHOOK_DELIVERIES: [
            make_row(WEBHOOK_DELIVERIES, {**delivery, "body": json.dumps({"data": answer})})
        ],
        ACCESS_REQUESTS: [
            make_row(
                ACCESS_REQUESTS,
                {
                    **request,
                    "scopes": "posts:read",
                    "claim_digest": mark.rjust(64, "0"),
                    "expires_at": LATER,
                },
            )
        ],
        FORMER_ROWS: [
            make_row(
                FORMER_ROWS,
                {**change, "row_id": lead["id"], "former": {"name": mark, "dedupe_hash": "digest"}},
            ),
            make_row(FORMER_ROWS, {**change, "row_id": "x", "changed": answer["lead"]}),
        ],
        IDEMPOTENCY_KEYS: [
            make_row(
                IDEMPOTENCY_KEYS,
                {**digests, "status": 201, "response": json.dumps(answer), "expires_at": LATER},
            )
        ],
    }


def make_sole_rows(address: str, mark: str) -> dict[Table, list[Row]]:
    """Return what there is once for an address: token, suppression and subscription."""
    given = {"email": address, "reason": "bounce", "metadata": {"said": f"{mark} is no user"}}
    return {
        EMAIL_UNSUBSCRIBE_TOKENS: [
            make_row(EMAIL_UNSUBSCRIBE_TOKENS, {"token": mark.ljust(43, "t"), "email": address})
        ],
        SUPPRESSED_EMAILS: [make_row(SUPPRESSED_EMAILS, given)],
        SUBSCRIBERS: [
            make_row(
                SUBSCRIBERS,
                {"token": mark.ljust(64, "t"), "email": address, "consent": f"{mark} agrees"},
            )
        ],
    }


@pytest.fixture
def peopled(installation: Installation) -> Installation:
    """Return an installation that knows Ann by several spellings, and others nearly alike."""
    for number, address in enumerate(SPELLINGS):
        store_rows(installation, make_rows(address, f"annmark{number}"))
    for number, address in enumerate(OTHERS):
        store_rows(installation, make_rows(address, f"other{number}"))
    store_rows(installation, make_sole_rows(ANN, "annmark"))
    store_rows(installation, make_sole_rows(OTHERS[0], "other"))
    return installation


def marks(rows: list[list[Row]]) -> str:
    """Return all that rows say."""
    return json.dumps(rows)


def test_everything_about_a_person_is_shown(peopled: Installation) -> None:
    """In any spelling of the address, and nothing about anybody else."""
    status, said, complained = peopled.run("privacy", "export", "ANN@example.org", "--json")
    exported = json.loads(said)

    assert (status, complained) == (0, "")
    assert list(exported) == ["email", "exported_at", *(table.name for table in TABLES)]
    assert '"digest"' not in said  # what no interface shows, in a former row either
    counts = {table.name: len(exported[table.name]) for table in TABLES}
    once = {"email_unsubscribe_tokens": 1, "suppressed_emails": 1, "subscribers": 1}
    assert counts == {**dict.fromkeys(counts, 4), "email_send_log": 12, "former_rows": 8, **once}
    assert "other" not in said
    assert {row["email"] for row in exported["leads"]} == set(SPELLINGS)


OLD_PATTERN = re.compile(r'[^\s<>"(),:;\[\]{}]+@[^\s<>"(),:;\[\]{}]+')
"""The definition of an address in a text, which takes a time quadratic in the text."""


@pytest.mark.size("quick")
@given(st.lists(st.sampled_from([ANN, ANN.upper(), "@", ".", "'", "x", " ", "<", ">", ",", "\n"])))
def test_an_address_in_a_text_is_found_as_the_pattern_has_it(parts: list[str]) -> None:
    """With anything around it, and other at signs in the text."""
    text = "".join(parts)
    found = [text.strip(), *(each[0].strip("'`.!?\\") for each in OLD_PATTERN.finditer(text))]
    assert is_within(ANN, text) == (ANN in map(str.lower, found))


@pytest.mark.size("quick")
@pytest.mark.parametrize("part", ["x", "@", "a@", "a.", "\u0301\u0323", "'", " "])
def test_a_long_text_is_read_in_linear_time(part: str) -> None:
    """Strangers write some of it; the pattern took minutes, and composing accents seconds."""
    assert not is_within(ANN, "x")  # loads the library
    start = time.process_time()
    assert not is_within(ANN, f"a@{part * 50_000}@x")
    assert is_within(ANN, f"{part * 50_000} {ANN}")
    assert time.process_time() - start < 1


def test_no_secret_is_shown(peopled: Installation) -> None:
    """Values that let a reader act in the person's name, or the service's, stay in the store."""
    _, said, _ = peopled.run("privacy", "export", ANN, "--json")
    exported = json.loads(said)

    assert "annmarkttt" not in said
    assert "0000annmark" not in said
    assert set(exported["email_unsubscribe_tokens"][0]) == {"id", "email", "created_at", "used_at"}
    assert "lease" not in exported["email_outbox"][0]
    assert "dedupe_hash" not in exported["leads"][0]
    assert exported["lead_messages"][0].keys().isdisjoint(("message_digest", "audit_id"))


def test_a_person_can_read_the_export(peopled: Installation) -> None:
    """Without `--json` it is a list of rows, in which nothing steers a terminal."""
    hostile = make_rows("eve@example.org", "evil")
    hostile[LEADS][0]["message"] = "\x1b[2Jgone\nsecond line"
    store_rows(peopled, hostile)
    status, said, _ = peopled.run("privacy", "export", "eve@example.org")

    assert status == 0
    assert "leads\n  id: " in said
    assert "message: \ufffd[2Jgone\n    second line\n" in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "spelling", ["ann@example.org", "ANN@EXAMPLE.ORG", *in_ci("Ann@example.org")]
)
def test_everything_about_a_person_is_erased(peopled: Installation, spelling: str) -> None:
    """In one go, from every table, and nothing of anybody else."""
    others = make_rows("x@example.org", "x")
    status, said, complained = peopled.run("privacy", "erase", spelling, "--yes")
    tables = [table for table in TABLES if table is not SUPPRESSED_EMAILS]
    rows = stored(peopled, *tables)

    assert (status, complained) == (0, "")
    assert "leads: 4 rows erased" in said
    assert "email_send_log: 12 rows erased" in said
    assert "backups" in said
    assert "annmark" not in marks(rows)
    kept = {table.name: len(some) for table, some in zip(tables, rows, strict=True)}
    once = {"email_unsubscribe_tokens": 1, "subscribers": 1}
    assert kept == {table.name: 4 * len(others.get(table, [])) for table in tables} | once


def test_the_wish_not_to_be_mailed_is_kept(peopled: Installation) -> None:
    """An existing suppression stays, without the notes beside it."""
    _, said, _ = peopled.run("privacy", "erase", ANN, "--yes")
    (rows,) = stored(peopled, SUPPRESSED_EMAILS)
    kept = {row["email"]: (row["reason"], row["metadata"]) for row in rows}

    assert "suppressed_emails: the address is kept" in said
    assert kept[ANN] == ("bounce", None)
    assert kept[OTHERS[0]][1] is not None


def test_no_suppression_is_made(installation: Installation) -> None:
    """A person who was never suppressed leaves no address behind."""
    store_rows(installation, make_rows(ANN, "annmark"))
    installation.run("privacy", "erase", ANN, "--yes")

    assert stored(installation, SUPPRESSED_EMAILS) == [[]]


def test_an_erasure_is_audited_without_the_address(peopled: Installation) -> None:
    """The log says who erased how many rows of what, and not of whom."""
    peopled.run("privacy", "erase", ANN, "--yes")
    (entries,) = stored(peopled, AUDIT_LOG)
    erased = {entry["table_name"]: entry["rows"] for entry in entries if entry["verb"] == "erase"}

    assert {entry["actor"] for entry in entries} == {"credential:operator"}
    assert erased == {
        **dict.fromkeys((table.name for table in TABLES), 4),
        "email_send_log": 12,
        "former_rows": 8,
        "email_unsubscribe_tokens": 1,
        "suppressed_emails": 1,
        "subscribers": 1,
    }
    assert "ann" not in json.dumps(entries)


@pytest.mark.size("ci")
def test_another_spelling_of_a_domain_is_the_same_person(installation: Installation) -> None:
    """A domain of other letters is one, in Unicode and in ASCII."""
    store_rows(installation, make_rows("ann@b\u00fccher.example", "annmark"))
    installation.run("privacy", "erase", "Ann@xn--bcher-kva.example", "--yes")

    assert "annmark" not in marks(stored(installation, *TABLES))


def test_a_stored_invalid_address_can_be_erased(installation: Installation) -> None:
    """Administrators may have written anything into the column."""
    rows = make_rows("Ann, by phone", "annmark")
    store_rows(installation, {LEADS: rows[LEADS]})
    status, _, _ = installation.run("privacy", "erase", "ann, by phone", "--yes")

    assert status == 0
    assert stored(installation, LEADS) == [[]]


@pytest.mark.parametrize("action", [["export"], ["erase", "--yes"]])
@pytest.mark.parametrize("address", ["ann@example,org", *in_ci("ann", "", "@", "*")])
def test_an_invalid_address_is_reported(
    peopled: Installation, action: list[str], address: str
) -> None:
    """It is refused: `nothing is kept` would be taken for an answer."""
    before = stored(peopled, *TABLES)
    status, _, complained = peopled.run("privacy", *action, address)

    assert (status, complained) == (2, "EMAIL: not a valid e-mail address\n")
    assert stored(peopled, *TABLES) == before


def test_an_unknown_address_has_no_rows(peopled: Installation) -> None:
    """Nothing is kept of an address that nobody wrote from, and the command says so."""
    for words in (("export",), ("erase",)):
        status, said, _ = peopled.run("privacy", *words, "nobody@example.org")
        assert (status, said) == (0, "nothing is kept of nobody@example.org\n")


def test_erasing_needs_a_confirmation(peopled: Installation) -> None:
    """Without a terminal it takes `--yes`, and nothing is changed before."""
    before = stored(peopled, *TABLES)
    status, _, complained = peopled.run("privacy", "erase", ANN)

    assert status == 2
    assert "--yes" in complained
    assert stored(peopled, *TABLES) == before


@pytest.mark.parametrize(
    ("answer", "status"), [(b"y\n", 0), (b"n\n", 1), *in_ci((b"\n", 1), (b"\x04", 1))]
)
def test_erasing_asks_at_a_terminal(peopled: Installation, answer: bytes, status: int) -> None:
    """At a terminal the counts are shown first; anything but yes erases nothing."""
    before = stored(peopled, *TABLES)
    person, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "edge_api", "privacy", "erase", ANN],
        cwd=peopled.folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **peopled.settings},
        stdin=terminal,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.write(person, answer)
    said, _ = process.communicate(timeout=patience())
    os.close(terminal)
    os.close(person)

    assert "Erase 4 rows of leads, 12 rows of email_send_log, " in said
    assert process.returncode == status
    assert (stored(peopled, *TABLES) == before) is bool(status)


@pytest.fixture
def served(installation: Installation) -> Iterator[ServedEdge]:
    """Return an edge that serves while commands run."""
    with installation.serving() as edge:
        assert edge.await_body("/api/public/ping", b"ok")
        yield edge


def send(edge: ServedEdge, number: int, address: str, text: str) -> None:
    """Send a lead with a key."""
    fields = {"name": f"{text} {number}", "email": address, "budget_tier": "b"}
    body = json.dumps({**fields, "message": f"{text} " * (1 + number * 7 % 190)}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": f"{text}{number}"}
    status, _, _ = edge.post("/api/public/v1/leads", body, headers)
    assert status == 201


def bytes_of(installation: Installation) -> bytes:
    """Return all bytes of the store's files."""
    return bytes_in(installation.folder)


def bytes_in(folder: Path) -> bytes:
    """Return all bytes of the files of the store in a folder."""
    return b"".join(path.read_bytes() for path in folder.glob("edge.db*"))


def test_erased_text_is_gone_from_the_disk(installation: Installation, served: ServedEdge) -> None:
    """Beside a running edge too: neither the file of the store nor its log has a word left."""
    for number in range(150):
        send(served, number, OTHERS[number % 4], "Bystander")
        send(served, number, SPELLINGS[number % 2], "Erasable")
    before = bytes_of(installation)
    status, _, complained = installation.run("privacy", "erase", ANN, "--yes")
    after = bytes_of(installation)

    assert (status, complained) == (0, "")
    assert before.count(b"Erasable") > 150
    assert after.count(b"Erasable") == 0
    assert after.lower().count(b"ann@example.org") == after.lower().count(b"joann@example.org") + (
        after.lower().count(b"ann@example.org.test")
    )
    assert after.count(b"Bystander") > 150
    send(served, 1000, ANN, "Again")


@pytest.mark.size("ci")
async def test_copies_in_other_database_pages_are_scrubbed(tmp_path: Path) -> None:
    """Rows that grew and shrank leave copies where they lay: a whole scrub finds them."""
    chance = Random(1)  # noqa: S311  the same rows each time
    store = await open_store(tmp_path / "edge.db", system_clock)
    try:
        leads = [
            make_lead(email=ANN if is_ann else OTHERS[0], message=word * chance.randint(1, 180))
            for is_ann, word in (chance.choice(WORDS) for _ in range(2000))
        ]
        await store.run(Insert(LEADS, leads))
        for lead in chance.sample(leads, 1500):
            notes = lead["message"][:9] * chance.randint(1, 400)
            await store.run(Update(LEADS, {"notes": notes}, (Filter("id", "eq", lead["id"]),)))
        await Privacy(store, system_clock).erase(ANN, OPERATOR)
        assert await store.scrub(full=True)
        files = bytes_in(tmp_path)
    finally:
        await store.close()

    assert files.count(b"Erasable") == 0
    assert files.count(b"Bystander") > 1000


def test_a_reader_of_the_log_is_named(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """While somebody reads an older state the log cannot be cut: that is reported, and fixed."""
    monkeypatch.setattr(command, "SCRUB_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setenv("DATABASE_URL", installation.settings["DATABASE_URL"])
    monkeypatch.chdir(installation.folder)
    store_rows(installation, make_rows(ANN, "annmark"))
    with closing(sqlite3.connect(installation.store, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM leads").fetchone()
        assert main(["privacy", "erase", ANN, "--yes"]) == 1
        assert "run this again" in capsys.readouterr().err
        reader.execute("COMMIT")

    assert main(["privacy", "erase", ANN]) == 0
    assert b"annmark asks" not in bytes_of(installation)


@pytest.mark.size("ci")
def test_an_erased_lead_is_not_answered_again(
    installation: Installation, served: ServedEdge
) -> None:
    """A kept answer goes with its lead: the same key makes a new one."""
    send(served, 1, ANN, "Erasable")
    installation.run("privacy", "erase", ANN, "--yes")
    send(served, 1, ANN, "Erasable")

    assert len(stored(installation, LEADS)[0]) == 1


@pytest.mark.size("ci")
def test_the_list_of_leads_forgets(installation: Installation, served: ServedEdge) -> None:
    """The running edge lists no erased lead, not even from what it keeps in memory."""
    send(served, 1, ANN, "Erasable")
    _, said, _ = installation.run("keys", "issue", "--name", "t", "--json")
    headers = {"X-API-Key": json.loads(said)["key"]}
    assert b"Erasable" in served.get("/api/public/v1/leads", headers)[2]
    installation.run("privacy", "erase", ANN, "--yes")

    assert b"Erasable" not in served.get("/api/public/v1/leads", headers)[2]


def test_the_operator_deletes_what_is_old(installation: Installation) -> None:
    """By hand, as the settings say, and to the last byte; without settings it says so."""
    rows = make_rows(ANN, "annmark")
    rows[LEADS][0]["created_at"] = "2001-01-01T00:00:00.000000Z"
    store_rows(installation, rows)
    fresh = make_rows(OTHERS[0], "other")
    fresh[LEADS][0]["created_at"] = LATER
    store_rows(installation, fresh)
    status, said, _ = installation.run("privacy", "retain")
    assert (status, said.startswith("everything is kept for ever")) == (0, True)
    limited = installation.changed(RETAIN_LEADS_DAYS="30", RETAIN_AUDIT_DAYS="30")
    status, said, _ = limited.run("privacy", "retain")

    assert (status, said) == (0, "leads: 1 row deleted\naudit_log: 0 rows deleted\n")
    leads, outbox, deliveries = stored(installation, LEADS, EMAIL_OUTBOX, WEBHOOK_DELIVERIES)
    assert (len(leads), len(outbox), len(deliveries)) == (1, 1, 1)


def test_rows_of_a_deleted_lead_go_when_its_undo_expires(
    installation: Installation,
) -> None:
    """Not with an older change of the lead, as long as its deletion can be undone."""
    rows, others = make_rows(ANN, "annmark"), make_rows(OTHERS[0], "other")
    (deleted,), (kept,) = rows.pop(LEADS), others[LEADS]
    change = {"audit_id": deleted["id"], "table_name": "leads", "former": {"name": "annmark"}}
    versions = [
        make_row(FORMER_ROWS, {**change, "row_id": row_id}) | {"created_at": created_at}
        for row_id in (deleted["id"], kept["id"])
        for created_at in ("2001-01-01T00:00:00.000000Z", LATER)
    ]
    store_rows(installation, {**rows, FORMER_ROWS: versions[:3]})
    store_rows(installation, {**others, FORMER_ROWS: []})
    limited = installation.changed(RETAIN_UNDO_DAYS="30")
    limited.run("privacy", "retain")
    bodies = [row["body"] for row in stored(installation, LEAD_MESSAGES)[0]]
    assert bodies == ["annmark thanks", "other thanks"]

    oldest = "UPDATE former_rows SET created_at = '2001-01-01T00:00:00.000000Z'"
    with closing(sqlite3.connect(installation.store)) as database, database:
        database.execute(oldest)
    limited.run("privacy", "retain")
    bodies = [row["body"] for row in stored(installation, LEAD_MESSAGES)[0]]
    assert bodies == ["other thanks"]


async def test_a_running_edge_deletes_what_is_old(
    make_edge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being asked."""
    monkeypatch.setattr(background_jobs, "SWEEP_SECONDS", 0.05)
    async with make_edge(RETAIN_LEADS_DAYS="30") as edge:
        old = make_rows(ANN, "annmark")[LEADS][0] | {"created_at": "2001-01-01T00:00:00.000000Z"}
        await edge.service.store.run(Insert(LEADS, [old, make_lead(created_at=LATER)]))
        for _ in range(200):
            (result,) = await edge.service.store.run(Read(LEADS))
            if len(result.rows) == 1:
                break
            await asyncio.sleep(0.05)

    assert [row["name"] for row in result.rows] == ["Ada"]


def test_a_lead_by_the_form_is_erased(installation: Installation, served: ServedEdge) -> None:
    """With the consent that came along."""
    fields = {"name": "A", "email": ANN, "budget_tier": "b", "message": "m", "consent": "on"}
    body = urlencode({**fields, "consent_text": "Erasable wording"}).encode()
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Idempotency-Key": "form",
    }
    assert served.post("/contact/", body, headers)[0] == 201
    _, said, _ = installation.run("privacy", "export", ANN)
    assert "consent_text: Erasable wording" in said
    installation.run("privacy", "erase", ANN, "--yes")

    assert b"Erasable wording" not in bytes_of(installation)
