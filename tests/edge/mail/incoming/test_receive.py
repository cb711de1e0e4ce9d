"""`mail receive`: what a relay pipes into it, beside a running edge or without one."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from edge_api.db.query import Store
from tests.edge.edge_process import Installation, free_port
from tests.edge.mail.incoming.correspondence import answer_lead, received, report, write
from tests.patience import patience

pytestmark = [pytest.mark.size("test"), pytest.mark.each_engine]

TRY_LATER = 75  # sysexits.h
LEFT_ALONE = "left alone: it answers no message of this journal\n"


@pytest.fixture
def installation(tmp_path: Path, store_url: str, journal: Path) -> Installation:
    """Return an installation on the store of the test."""
    return Installation(
        tmp_path,
        {
            "DATABASE_URL": store_url,
            "SECRET_KEY": "a secret of thirty-two characters",
            "BUILD_DIR": str(journal),
            "SITE_URL": "http://journal.test",
            "PORT": str(free_port()),
        },
    )


async def receive(installation: Installation, message: bytes) -> tuple[int, str, str]:
    """Pipe a message into the command, as a relay does; return its status and what it says."""

    def run() -> tuple[int, str, str]:
        words = ["mail", "receive"]
        with installation.start(*words, stdin=subprocess.PIPE) as process:
            said, complained = process.communicate(message.decode("latin-1"), timeout=patience())
        return process.returncode, said, complained

    return await asyncio.to_thread(run)


async def test_a_reply_is_stored_without_an_edge(store: Store, installation: Installation) -> None:
    """With the line that some relays put before it; a second time it is known."""
    _, answer = await answer_lead(store)
    message = b"From ann@readers-club.net Sun Nov 29 10:00:00 2026\r\n" + write(answer, "Nine.")

    assert await receive(installation, message) == (0, "stored\n", "")
    assert await receive(installation, message) == (0, "stored\n", "")
    assert [row["body"] for row in await received(store)] == ["Nine."]


async def test_two_pipes_at_once_store_a_message_once(
    store: Store, installation: Installation
) -> None:
    """The one that comes second finds it, or says that it should be tried again."""
    _, answer = await answer_lead(store)
    message = write(answer)
    ended = await asyncio.gather(*(receive(installation, message) for _ in range(3)))

    assert {code for code, _, _ in ended} <= {0, TRY_LATER}
    assert 0 in {code for code, _, _ in ended}
    assert len(await received(store)) == 1


@pytest.mark.parametrize(
    "message",
    [b"", b"\x00" * 5000, b"Subject: x\r\n\r\nNothing of ours\r\n", b"x" * (5 << 20)],
)
async def test_a_message_for_others_is_no_failure(
    message: bytes, store: Store, installation: Installation
) -> None:
    """The relay has done its part: the message is not returned to its sender."""
    assert await receive(installation, message) == (0, LEFT_ALONE, "")
    assert await received(store) == []


async def test_a_report_is_taken_too(store: Store, installation: Installation) -> None:
    """As from the mailbox."""
    _, answer = await answer_lead(store)

    assert await receive(installation, report(answer)) == (0, "stored\n", "")


async def test_a_relay_tries_again_where_it_cannot_be_stored(
    store: Store, installation: Installation
) -> None:
    """A wrong setting, a store that is not there: the message waits at the relay."""
    _, answer = await answer_lead(store)
    wrong = installation.changed(SITE_URL="nonsense")
    gone = installation.changed(DATABASE_URL="sqlite:////nowhere/edge.db")

    for broken in (wrong, gone):
        code, said, complained = await receive(broken, write(answer))
        assert (code, said) == (TRY_LATER, "")
        assert complained.count("\n") == 1
    assert await received(store) == []
