"""The owner's mailbox on a real IMAP server: what is read, by whom, and what is left alone."""

import asyncio
import json
from typing import Any

import pytest

from edge_api.db.query import Delete, Read, Store, read_all, where_id
from edge_api.db.tables import AUDIT_LOG, LEADS
from tests.edge.mail.incoming.conftest import Folder, Reader
from tests.edge.mail.incoming.correspondence import (
    LEAD,
    answer_lead,
    mailbox_state,
    received,
    set_status,
    status_of,
    until,
    until_read,
    write,
)
from tests.edge.mail.outbox.scripted_relay import relaying

pytestmark = [pytest.mark.size("test"), pytest.mark.each_engine]

PRIVATE = (
    b"From: a@friends.net\r\nSubject: Dinner\r\nMessage-ID: <1@friends.net>\r\n\r\nAt eight?\r\n"
)


async def test_a_reply_joins_its_thread_and_brings_it_back(reading: Reader, folder: Folder) -> None:
    """It is marked as read; other mail is not, and nothing of it is stored."""
    async with reading() as edge:
        lead, answer = await answer_lead(edge.service.store)
        await set_status(edge.service.store, lead, remind_at="2099-01-01T00:00:00.000000Z")
        folder.put(PRIVATE, write(answer, "At nine.\r\n\r\n> Yes."), PRIVATE)
        await until_read(edge.service.store, 3)

        (row,) = await received(edge.service.store)
        (now,) = await read_all(edge.service.store, Read(LEADS))
        audit = await read_all(edge.service.store, Read(AUDIT_LOG))

    assert (row["lead_id"], row["email"]) == (lead["id"], "ann@readers-club.net")
    assert (row["subject"], row["body"]) == ("Re: Your question", "At nine.\n\n> Yes.")
    assert (row["is_verified"], row["is_automatic"], row["attachments"]) == (0, 0, None)
    assert (now["status"], now["remind_at"]) == ("new", None)
    assert [(each["actor"], each["verb"]) for each in audit] == [("credential:service", "receive")]
    assert ["\\Seen" in each for each in folder.flags()] == [False, True, False]


@pytest.mark.parametrize("scheme", ["imaps", "imap+starttls", "imap"])
async def test_each_kind_of_imap_connection_works(
    scheme: str, reading: Reader, folder: Folder
) -> None:
    """With TLS from the start or by STARTTLS, and on this machine without."""
    async with reading(MAILBOX_URL=folder.url(scheme)) as edge:
        _, answer = await answer_lead(edge.service.store)
        folder.put(write(answer))
        await until_read(edge.service.store, 1)

        assert len(await received(edge.service.store)) == 1
        assert (await mailbox_state(edge.service.store))["fault"] is None


@pytest.mark.parametrize("scheme", ["imaps", "imap+starttls"])
async def test_a_certificate_of_somebody_else_is_refused(
    scheme: str, reading: Reader, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readiness warns in a sentence without names, and nothing was sent there."""
    monkeypatch.delenv("SSL_CERT_FILE")
    async with reading(MAILBOX_URL=folder.url(scheme)) as edge:
        await await_fault(edge.service.store, "the mailbox's certificate is not to be trusted")
        answer = await edge.ask("GET", "/api/public/v1/readiness")
        body = await answer.json()

    assert (answer.status, body["checks"]["mailbox"]["status"]) == (200, "warn")
    assert "localhost" not in json.dumps(body["checks"])


async def await_fault(store: Store, words: str | None) -> None:
    """Return once the state has that fault."""

    async def is_there() -> bool:
        state = await mailbox_state(store)
        return bool(state["checked_at"]) and state["fault"] == words

    await until(is_there)


async def test_a_mailbox_that_goes_away_is_read_on_when_it_is_back(
    reading: Reader, folder: Folder
) -> None:
    """The service works meanwhile; nothing is read twice or forgotten."""
    async with reading() as edge:
        store = edge.service.store
        _, answer = await answer_lead(store)
        folder.put(write(answer, "first"))
        await until_read(store, 1)
        folder.server.end()
        await await_fault(store, "the mailbox cannot be reached")
        readiness = await (await edge.ask("GET", "/api/public/v1/readiness")).json()
        folder.server.start()
        folder.put(write(answer, "second"))
        await await_fault(store, None)
        await until_read(store, 2)
        rows = await received(store)

    assert readiness["ready"] is True
    assert readiness["checks"]["mailbox"]["error"] == "the mailbox cannot be reached"
    assert [row["body"] for row in rows] == ["first", "second"]


async def test_a_wrong_password_is_not_tried_each_minute(
    reading: Reader, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a refusal there is a longer pause, which another password ends at once."""
    monkeypatch.undo()
    monkeypatch.setenv("SSL_CERT_FILE", str(folder.server.certificate))
    monkeypatch.setattr("edge_api.app.POLL_SECONDS", 0.05)
    refused = "the mailbox refused user, password or folder: correct MAILBOX_URL"
    async with reading(MAILBOX_URL=folder.url(password="wrong")) as edge:
        await await_fault(edge.service.store, refused)
        state = await mailbox_state(edge.service.store)
    minutes = (int(state["turn_until"][14:16]) - int(state["checked_at"][14:16])) % 60

    assert minutes == 10
    async with reading() as edge:
        await await_fault(edge.service.store, None)


async def test_a_folder_that_is_not_there_is_named(reading: Reader, folder: Folder) -> None:
    """As a sentence that says which setting to correct."""
    async with reading(MAILBOX_URL=folder.server.url(folder="/Nowhere")) as edge:
        await await_fault(
            edge.service.store,
            "the mailbox refused user, password or folder: correct MAILBOX_URL",
        )


async def test_a_message_that_is_deleted_meanwhile_holds_up_nothing(
    reading: Reader, folder: Folder
) -> None:
    """Gaps between UIDs neither."""
    async with reading() as edge:
        store = edge.service.store
        _, answer = await answer_lead(store)
        folder.put(*(write(answer, f"number {number}") for number in range(4)))
        with folder.server.opened(folder.name) as client:
            client.store("1:3", "+FLAGS", r"(\Deleted)")
            client.expunge()
        await until_read(store, 4)
        bodies = {row["body"] for row in await received(store)}

    assert "number 3" in bodies


async def test_a_folder_made_anew_is_read_from_its_beginning(
    reading: Reader, folder: Folder
) -> None:
    """With another UIDVALIDITY; what was stored before is not stored again."""
    async with reading() as edge:
        store = edge.service.store
        _, answer = await answer_lead(store)
        old, new = write(answer, "old"), write(answer, "new")
        folder.put(PRIVATE, PRIVATE, old)
        validity = (await until_read(store, 3))["uid_validity"]
        with folder.server.opened() as client:
            client.delete(f'"{folder.name}"')
            client.create(f'"{folder.name}"')
        folder.put(old, new)

        async def is_reread() -> bool:
            state = await mailbox_state(store)
            return bool(state["uid_validity"] != validity and state["last_uid"] == 2)

        await until(is_reread)
        rows = await received(store)

    assert [row["body"] for row in rows] == ["old", "new"]


async def test_a_program_that_always_answers_is_stopped(reading: Reader, folder: Folder) -> None:
    """Twenty messages a day are stored for a lead; the rest stays unread."""
    async with reading() as edge:
        _, answer = await answer_lead(edge.service.store)
        _, other = await answer_lead(edge.service.store, email="eve@readers-club.net")
        folder.put(*(write(answer, f"{number}") for number in range(23)), write(other))
        await until_read(edge.service.store, 24)
        rows = await received(edge.service.store)

    assert len(rows) == 21
    assert ["\\Seen" in each for each in folder.flags()] == [True] * 20 + [False] * 3 + [True]


async def test_a_lead_that_was_erased_gets_nothing(reading: Reader, folder: Folder) -> None:
    """Its replies stay in the mailbox, unread."""
    async with reading() as edge:
        lead, answer = await answer_lead(edge.service.store)
        await edge.service.store.run(Delete(LEADS, where_id(lead["id"])))
        folder.put(write(answer))
        await until_read(edge.service.store, 1)

        assert await received(edge.service.store) == []
    assert folder.flags() == [""]


async def test_ten_thousand_messages_hold_up_nobody(reading: Reader, folder: Folder) -> None:
    """Requests are answered while they are looked at, and the one reply is found."""
    private = folder.server.folder / "mail" / f".{folder.name}" / "new"
    async with reading() as edge:
        store: Any = edge.service.store
        _, answer = await answer_lead(store)
        for number in range(10_000):
            (private / f"{number}.x").write_bytes(PRIVATE)
        with folder.server.opened(folder.name):
            pass
        folder.put(write(answer))
        answered = 0
        while (await mailbox_state(store))["last_uid"] < 10_001:
            answered += (await edge.ask("GET", "/api/public/ping")).status == 200
        await until_read(store, 10_001)

        assert answered > 50
        assert len(await received(store)) == 1
    assert sum("\\Seen" in each for each in folder.flags()) == 1


async def test_spam_and_automatic_replies_change_no_status(reading: Reader, folder: Folder) -> None:
    """They are stored all the same."""
    async with reading() as edge:
        store = edge.service.store
        spam, to_spam = await answer_lead(store, status="spam")
        away, to_away = await answer_lead(store, email="eve@readers-club.net")
        folder.put(write(to_spam), write(to_away, Auto_Submitted="auto-replied"))
        await until_read(store, 2)

        assert [row["is_automatic"] for row in await received(store)] == [0, 1]
        assert await status_of(store, spam) == "spam"
        assert await status_of(store, away) == "contacted"


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_two_edges_store_each_reply_once(
    engine: str, reading: Reader, folder: Folder
) -> None:
    """They take turns; each reply is marked, whichever edge has read it."""
    assert engine
    async with reading() as edge, reading() as other:
        answers = [
            (await answer_lead(edge.service.store, email=f"a{number}@readers-club.net"))[1]
            for number in range(40)
        ]
        for answer in answers:
            await asyncio.to_thread(folder.put, write(answer))
        await until_read(other.service.store, len(answers))
        rows = await received(edge.service.store)

    assert len({row["lead_id"] for row in rows}) == len(rows) == len(answers)
    assert folder.flags() == ["\\Seen"] * len(answers)


async def test_a_reply_to_an_acknowledgement_joins_its_lead(
    reading: Reader, folder: Folder
) -> None:
    """By the Message-ID of the mail that went out."""
    async with relaying() as relay:
        mail = {"SMTP_URL": f"smtp://127.0.0.1:{relay.port}", "OWNER_EMAIL": "owner@journal.net"}
        async with reading(**mail, ACKNOWLEDGE_LEADS="true") as edge:
            await edge.ask("POST", "/api/public/v1/leads", json=LEAD)
            await relay.await_count(2)
            sent = {taken.recipient: taken.message for taken in relay.taken}
            folder.put(
                write(sent["owner@journal.net"]["Message-ID"], "The owner writes to himself."),
                write(sent[LEAD["email"]]["Message-ID"], "One thing more."),
                sent[LEAD["email"]].as_bytes(),
            )
            await until_read(edge.service.store, 3)
            rows = await received(edge.service.store)
            (lead,) = await read_all(edge.service.store, Read(LEADS))

    assert [(row["lead_id"], row["body"]) for row in rows] == [(lead["id"], "One thing more.")]
    assert ["\\Seen" in each for each in folder.flags()] == [False, True, False]
    assert len(relay.taken) == 2
