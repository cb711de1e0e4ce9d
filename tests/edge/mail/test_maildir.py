import asyncio
import mailbox
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from edge_api.mail.delivery import classify
from edge_api.mail.transports import MailRefusal, open_transport
from tests.edge.mail.conftest import notification

SENDER, RECIPIENT = "journal@journal.example", "owner@localhost"


def kept(folder: Path) -> list[mailbox.MaildirMessage]:
    """Return the messages that a mail program sees in a folder."""
    return list(mailbox.Maildir(folder, create=False))


async def test_a_message_is_a_file_that_mail_programs_read(tmp_path: Path) -> None:
    """A message is in the folder as it was composed, and nothing is left in its `tmp`."""
    folder, message = tmp_path / "var" / "mail", notification(email="jos\u00e9@work.example.org")
    async with open_transport(f"maildir:{folder}")() as session:
        await session.send(SENDER, RECIPIENT, message)

    (file,) = (folder / "new").iterdir()
    parsed = message_from_bytes(file.read_bytes(), policy=policy.default)
    assert parsed["Subject"] == "New enquiry from Ann Lee"
    assert b"\r" not in file.read_bytes()
    assert "Reply-To: Ann Lee <jos\u00e9@work.example.org>\n" in file.read_text()
    assert list((folder / "tmp").iterdir()) == []
    assert len(kept(folder)) == 1


async def test_the_folder_is_private(tmp_path: Path) -> None:
    """Nobody else on the machine looks into the mail."""
    async with open_transport(f"maildir:{tmp_path / 'mail'}")():
        pass

    assert (tmp_path / "mail").stat().st_mode & 0o777 == 0o700


async def test_an_empty_folder_becomes_a_maildir(tmp_path: Path) -> None:
    """An existing folder is used."""
    async with open_transport(f"maildir:{tmp_path}")() as session:
        await session.send(SENDER, RECIPIENT, notification())

    assert len(kept(tmp_path)) == 1


async def test_many_at_once_lose_none(tmp_path: Path) -> None:
    """Sessions that write at the same time each keep their message."""

    async def send(number: int) -> None:
        async with open_transport(f"maildir:{tmp_path}")() as session:
            await session.send(SENDER, RECIPIENT, notification(name=f"Number {number}"))

    await asyncio.gather(*map(send, range(100)))

    subjects = {message["Subject"] for message in kept(tmp_path)}
    assert subjects == {f"New enquiry from Number {number}" for number in range(100)}


async def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    """A file in the way refuses the mail for now, without naming the place."""
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(MailRefusal) as caught:
        async with open_transport(f"maildir:{tmp_path / 'file'}")():
            pass

    assert (caught.value.stage, classify(caught.value)) == ("connect", "retry")
    assert caught.value.message == "the mail folder cannot be written: File exists"


async def test_a_folder_that_goes_away_is_refused(tmp_path: Path) -> None:
    """Mail into a folder that is removed within a batch waits."""
    async with open_transport(f"maildir:{tmp_path / 'mail'}")() as session:
        for part in ("tmp", "new", "cur"):
            (tmp_path / "mail" / part).rmdir()
        with pytest.raises(MailRefusal) as caught:
            await session.send(SENDER, RECIPIENT, notification())

    assert (caught.value.stage, classify(caught.value)) == ("data", "retry")
    assert str(tmp_path) not in caught.value.message
