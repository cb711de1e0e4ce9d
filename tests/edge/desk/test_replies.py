"""Saved replies at the desk: files beside the store that two windows, or a person, may change."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_api.db.internal_tables import EMAIL_OUTBOX
from edge_api.db.query import Update, where_id
from edge_api.db.tables import AUDIT_LOG, LEAD_MESSAGES
from edge_api.desk.sessions import OWNER
from edge_api.desk.settings import MAX_REPLIES, MAX_REPLY_LENGTH, REPLIES_PATH, list_replies
from edge_api.mail.answers import Answers
from tests.edge.conftest import EdgeMaker, RunningEdge
from tests.edge.desk.conftest import Browser, Response

pytestmark = pytest.mark.one_engine
Kept = Callable[[], dict[str, str]]


@pytest.fixture
def kept(edge: RunningEdge) -> Kept:
    """Return what lists the replies that are stored."""
    return lambda: list_replies(edge.service.settings)


@pytest.fixture
def folder(edge: RunningEdge) -> Path:
    """Return the folder of the replies."""
    path: Path = edge.service.settings.database_path.with_name("replies")
    path.mkdir()
    return path


def files_in(folder: Path) -> set[Path]:
    """Return what is in a folder, but for the store."""
    return {path for path in folder.rglob("*") if "edge.db" not in path.name}


async def save(owner: Browser, name: str, text: str, **more: str) -> Response:
    """Save a new reply."""
    form = {"was": "", "was_name": "", **more}
    return await owner.post(REPLIES_PATH, name=name, text=text, **form)


def form_of(page: Response, name: str) -> dict[str, str]:
    """Return what the form of a reply remembers of it."""
    for form in page.tree.css(f"form[action='{REPLIES_PATH}']"):
        fields = {each.attributes["name"]: each.attributes["value"] for each in form.css("input")}
        if fields.get("was_name") == name:
            return {key: str(fields[key]) for key in ("was", "was_name")}
    raise AssertionError(name)


async def test_a_reply_is_added_changed_and_deleted(owner: Browser, kept: Kept) -> None:
    """Each is a file that only the journal's user reads; the audit log has each change."""
    added = await save(owner, " Not  now ", "Dear you,\r\n\r\nnot this year.\r\n")
    assert (added.status, added.to.partition("?")[0]) == (303, REPLIES_PATH)
    assert kept() == {"Not now": "Dear you,\n\nnot this year."}

    page = await owner.get(REPLIES_PATH)
    assert "Not now" in page.said
    await save(owner, "Not now", "Next year.", **form_of(page, "Not now"))
    assert kept() == {"Not now": "Next year."}

    page = await owner.get(REPLIES_PATH)
    await owner.post(REPLIES_PATH, delete="yes", name="Not now", **form_of(page, "Not now"))
    assert kept() == {}
    await owner.post(REPLIES_PATH, delete="yes", name="Not now", **form_of(page, "Not now"))
    assert kept() == {}
    verbs = [row["verb"] for row in await owner.rows(AUDIT_LOG) if "reply" in row["verb"]]
    assert verbs == ["save reply", "save reply", "delete reply"]


@pytest.mark.parametrize(
    "name", ["../up", "a/b", ".hidden", "a.md", "", " ", "x" * 61, "a\nb/", "nul\0", "-rf"]
)
async def test_a_name_leads_nowhere_else(
    owner: Browser, kept: Kept, tmp_path: Path, name: str
) -> None:
    """A name that a path would give another meaning is refused, and the text is kept."""
    before = files_in(tmp_path)
    refused = await save(owner, name, "The text that was typed")

    assert refused.status == 400
    assert "The text that was typed" in refused.text
    assert "letters, digits" in refused.said or "control characters" in refused.said
    assert kept() == {}
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("text", ["", " \n ", "x" * (MAX_REPLY_LENGTH + 1), "a\x1bb"])
async def test_an_invalid_text_is_refused(owner: Browser, kept: Kept, text: str) -> None:
    """With what to fix; what was typed stays in the form."""
    refused = await save(owner, "Thanks", text)

    assert (refused.status, kept()) == (400, {})
    assert refused.one("#name").attributes["value"] == "Thanks"
    assert "The text" in refused.one("#text-fault").text()


async def test_a_long_text_beyond_ascii_is_stored(owner: Browser, kept: Kept) -> None:
    """As many characters as are allowed, each of nine bytes in the form."""
    text = "京" * MAX_REPLY_LENGTH
    assert (await save(owner, "長い", text)).status == 303
    assert kept() == {"長い": text}


async def test_two_windows_do_not_overwrite_each_other(owner: Browser, kept: Kept) -> None:
    """The second one is shown what the first one stored, and may store its own then."""
    await save(owner, "Thanks", "One")
    window = form_of(await owner.get(REPLIES_PATH), "Thanks")
    await save(owner, "Thanks", "Two", **window)

    late = await save(owner, "Thanks", "Three", **window)
    assert late.status == 400
    assert "Meanwhile Thanks was changed to: Two" in late.said
    assert "Three" in late.text
    assert kept() == {"Thanks": "Two"}
    gone = await owner.post(REPLIES_PATH, delete="yes", name="Thanks", **window)
    assert (gone.status, kept()) == (400, {"Thanks": "Two"})

    await save(owner, "Thanks", "Three", **form_of(late, "Thanks"))
    assert kept() == {"Thanks": "Three"}


async def test_a_new_reply_replaces_none(owner: Browser, kept: Kept) -> None:
    """Two windows may choose one name; the same text twice is a second press."""
    await save(owner, "Thanks", "One")
    assert (await save(owner, "Thanks", "One")).status == 303

    refused = await save(owner, "Thanks", "Two")
    assert refused.status == 400
    assert "Meanwhile Thanks was changed to: One" in refused.said
    assert refused.one("#text-0").text().strip() == "Two"
    assert kept() == {"Thanks": "One"}


async def test_the_text_of_a_deleted_reply_is_kept_in_the_form(owner: Browser, kept: Kept) -> None:
    """It is in the form of a new reply, with its name."""
    await save(owner, "Thanks", "One")
    window = form_of(await owner.get(REPLIES_PATH), "Thanks")
    await owner.post(REPLIES_PATH, delete="yes", name="Thanks", **window)

    late = await save(owner, "Thanks", "Two", **window)
    assert (late.status, kept()) == (400, {})
    assert "Meanwhile Thanks was deleted" in late.said
    assert late.one("#text-0").text().strip() == "Two"
    again = {"was": "", "was_name": ""}
    await save(owner, str(late.one("#name").attributes["value"]), "Two", **again)
    assert kept() == {"Thanks": "Two"}


async def test_no_more_than_a_hundred_are_stored(owner: Browser, kept: Kept, folder: Path) -> None:
    """One more is refused; those that are there can be changed."""
    for number in range(MAX_REPLIES):
        (folder / f"reply {number:03}.md").write_text("x")
    refused = await save(owner, "one more", "y")
    assert (refused.status, len(kept())) == (400, MAX_REPLIES)
    assert "100 replies are the most" in refused.said

    page = await owner.get(REPLIES_PATH)
    await save(owner, "reply 007", "y", **form_of(page, "reply 007"))
    assert kept()["reply 007"] == "y"


async def test_links_and_strange_files_are_left_alone(
    owner: Browser, kept: Kept, folder: Path, tmp_path: Path
) -> None:
    """Neither is what they lead to shown, nor is it written over."""
    secret = tmp_path / "secret"
    secret.write_text("password")
    (folder / "link.md").symlink_to(secret)
    (folder / "dead.md").symlink_to(tmp_path / "nowhere")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "latin.md").write_bytes(b"caf\xe9")
    (folder / "long.md").write_text("x" * (MAX_REPLY_LENGTH + 1))
    (folder / "fine.md").write_text("Fine\r\n")

    assert kept() == {"fine": "Fine\n"}
    page = await owner.get(REPLIES_PATH)
    assert "password" not in page.text
    for name in ("link", "dead", "folder", "pipe", "latin", "long"):
        refused = await save(owner, name, "mine")
        assert (refused.status, "File exists" in refused.said) == (400, True)
    assert secret.read_text() == "password"
    assert not (tmp_path / "nowhere").exists()
    assert len(files_in(folder)) == 7


async def test_a_full_disk_loses_nothing(owner: Browser, kept: Kept) -> None:
    """The former text stays, what was typed too, and no half of a file is left."""
    await save(owner, "Thanks", "One")
    window = form_of(await owner.get(REPLIES_PATH), "Thanks")
    folder = owner.edge.service.settings.database_path.with_name("replies")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        failed = await save(owner, "Thanks", "x" * 5000, **window)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert failed.status == 400
    assert "Nothing was changed" in failed.said
    assert "x" * 5000 in failed.text
    assert kept() == {"Thanks": "One"}
    assert files_in(folder) == {folder / "Thanks.md"}


async def test_a_key_that_only_reads_changes_nothing(edge: RunningEdge, kept: Kept) -> None:
    """It sees the replies, without forms."""
    owner = await Browser(edge).sign_in(await edge.key())
    await save(owner, "Thanks", "<b>One</b>")
    reader = await Browser(edge).sign_in(await edge.key("admin:read"))

    page = await reader.get(REPLIES_PATH)
    assert "<b>One</b>" in page.said
    assert page.tree.css_first("textarea") is None
    assert (await save(reader, "Mine", "x")).status == 403
    other = await Browser(edge).sign_in(await edge.key(tables=("email_send_log",)))
    assert (await other.get(REPLIES_PATH)).status == 403
    assert kept() == {"Thanks": "<b>One</b>"}


async def test_an_answer_is_taken_back_at_the_desk(make_edge: EdgeMaker) -> None:
    """One press leads to its draft; once it is on its way the same press says so."""
    async with make_edge(
        SMTP_URL="smtp://127.0.0.1:9", OWNER_EMAIL="g@journal-keepers.net"
    ) as edge:
        owner = await Browser(edge).sign_in(await edge.key())
        lead = await owner.lead(email="ann@readers-club.net")
        answers = edge.service[Answers]
        sent = await answers.send(lead, "Yes", "", OWNER)
        other = await Browser(edge).sign_in(await edge.key("admin:read"))
        path = f"/desk/leads/answers/{sent['id']}/undo/"
        assert (await other.post(path)).status == 403
        writer = await Browser(edge).sign_in(await edge.key("admin:read", "admin:write"))
        assert "mail:send" in (await writer.post(path)).said
        assert [row["kind"] for row in await owner.rows(LEAD_MESSAGES)] == ["sent"]

        done = await owner.post(path)
        assert (done.status, done.to.partition("?")[0]) == (303, f"/desk/leads/{lead['id']}/")
        assert [row["kind"] for row in await owner.rows(LEAD_MESSAGES)] == ["draft"]
        assert (await owner.post(path)).status == 404

        sent = await answers.send(lead, "Yes", "", OWNER)
        claimed = Update(EMAIL_OUTBOX, {"lease": "other"}, where_id(sent["id"]))
        await edge.service.store.run(claimed)
        late = await owner.post(f"/desk/leads/answers/{sent['id']}/undo/")
        assert (late.status, "It is sent already" in late.said) == (409, True)
