"""Writing at the desk, with the process that writes: list, form, pictures, publication."""

import re
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image

from edge_api.auth.desk_links import DeskLinks
from edge_api.desk.sessions import HIDDEN_FIELD, OWNER, Sessions
from tests.edge.conftest import SITE_URL, EdgeMaker, RunningEdge, run_build
from tests.edge.desk.conftest import Browser, Response
from tests.edge.engines import ON_SQLITE
from tests.edge.writing.test_writing_http import PATH
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
LIST, NEW = "/desk/posts/", "/desk/posts/new/"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
HEAD = "title: The first\nslug: the-first\ndate: 2026-01-01T10:00:00Z\nlang: de\n"
FIRST = f"---\n{HEAD}---\n\nIt began.\n"


@pytest.fixture
async def content(tmp_path: Path) -> Path:
    """Return the folder of the posts, with a published one."""
    folder = tmp_path / "content/posts"
    folder.mkdir(parents=True)
    (folder / "the-first.md").write_text(FIRST)
    return folder


@pytest.fixture
async def writable(
    make_edge: EdgeMaker, tmp_path: Path, content: Path
) -> AsyncIterator[RunningEdge]:
    """Return an edge whose journal can be written, and run the process that writes."""
    folders = {"CONTENT_DIR": str(content.parent), "BUILD_DIR": str(tmp_path / "build")}
    async with make_edge(WRITING="on", **folders) as running:
        with writing(tmp_path, content.parent, tmp_path / "build"):
            yield running


@pytest.fixture
async def writer(writable: RunningEdge) -> Browser:
    """Return the owner's browser, signed in by a link."""
    return await sign_in_owner(writable)


async def sign_in_owner(edge: RunningEdge) -> Browser:
    """Return a browser that is signed in by a link."""
    browser = Browser(edge)
    address = await edge.service[DeskLinks].create()
    assert (await browser.post(f"/desk/{address.partition('/desk/')[2]}")).status == 303
    return browser


async def draft(edge: RunningEdge, markdown: str, **more: str) -> dict[str, Any]:
    """Store a draft as an agent does; return its source."""
    key = await edge.key("posts:draft")
    given = {"markdown": markdown, **more}
    async with edge.ask("POST", PATH, key, json=given) as answer:
        assert answer.status == 200, await answer.text()
        return dict((await answer.json())["source"])


def fields_of(shown: Response) -> dict[str, str]:
    """Return the fields of the form of a post, as a browser sends them."""
    form, found = shown.one("#write"), {}
    for each in form.css("input:not([type=file])"):
        found[str(each.attributes["name"])] = each.attributes.get("value") or ""
    for each in form.css("textarea"):
        found[str(each.attributes["name"])] = each.text()
    return found


async def send(browser: Browser, shown: Response, **changes: Any) -> Response:
    """Send the form of a post as multipart, with changes; a tuple is a file."""
    form = aiohttp.FormData(quote_fields=False)
    for name, value in {**fields_of(shown), **changes}.items():
        if isinstance(value, tuple):
            form.add_field(name, BytesIO(value[1]), filename=value[0], content_type="image/jpeg")
        else:
            form.add_field(name, value.replace("\n", "\r\n"), content_type=None)
    if not form.is_multipart:
        form.add_field("picture", b"", filename="", content_type="application/octet-stream")
    action = str(shown.one("#write").attributes["action"])
    return await browser.ask("POST", action, data=form, headers=browser.own)


def names(folder: Path, pattern: str = "*") -> list[str]:
    """Return the names of files, sorted."""
    return sorted(each.name for each in folder.glob(pattern))


def picture(color: str = "red") -> bytes:
    """Return a small picture."""
    file = BytesIO()
    Image.new("RGB", (40, 30), color).save(file, "JPEG")
    return file.getvalue()


async def test_a_post_is_written_and_published(writer: Browser, content: Path) -> None:
    """The title makes the address; the page says where it is, and takes it back."""
    shown = await writer.get(NEW)
    saved = await send(
        writer, shown, title="Two: winters", text="The store\nhas stood.", tags="a, b c"
    )
    assert (saved.status, saved.page) == (303, f"{LIST}two-winters/")
    file = content / "two-winters.md"
    assert 'title: "Two: winters"\ntags: [a, b c]\n' in file.read_text()
    again = await writer.get(saved.page)
    assert fields_of(again)["text"].strip() == "The store\nhas stood."
    assert fields_of(again)["tags"] == "a, b c"

    to = (await send(writer, again, description="How it was.", do="publish")).page
    page = await writer.get(to)
    assert "Readers will see" in page.said
    assert "How it was." in page.said
    form = {"base": str(page.one("[name=base]").attributes["value"]), "when": "now"}
    assert (await writer.post(to, **form)).page == to
    assert "status: draft" not in file.read_text()
    done = await writer.get(to)
    assert "It will be at http" in done.said  # no build has it yet
    base = str(done.one("[name=base]").attributes["value"])
    back = await writer.post(to.replace("publish", "withdraw"), base=base)
    assert back.page == f"{LIST}two-winters/"
    assert "Readers no longer see it" in (await writer.get(back.to)).said
    assert "status: draft" in file.read_text()


async def test_other_keys_of_a_head_stay_as_they_were(writer: Browser, content: Path) -> None:
    """Without a change nothing is saved; with one, only its line changes."""
    shown = await writer.get(f"{LIST}the-first/")
    assert (await send(writer, shown)).status == 303
    assert not (content.parent.parent / "drafts").exists()
    assert (content / "the-first.md").read_text() == FIRST
    await send(writer, shown, text="It began well.\n")
    draft = (content.parent.parent / "drafts/the-first.md").read_text()
    assert draft == FIRST.replace("lang: de\n", "lang: de\nstatus: draft\n").replace(
        "began.", "began well."
    )


async def test_a_second_window_is_told_and_both_texts_are_kept(writer: Browser) -> None:
    """The form has what was typed, the page what was stored; saving again replaces it."""
    first = await writer.get(
        (await send(writer, await writer.get(NEW), title="Two", text="One.")).page
    )
    second = await writer.get(f"{LIST}two/")
    await send(writer, first, text="From the first window.")
    refused = await send(writer, second, text="From the second window.", description="Mine")
    assert refused.status == 412
    assert "changed elsewhere" in refused.said
    assert refused.one(".theirs .message").text().strip() == "From the first window."
    assert fields_of(refused)["text"].strip() == "From the second window."
    assert (await send(writer, refused)).status == 303
    last = fields_of(await writer.get(f"{LIST}two/"))
    assert (last["text"].strip(), last["description"]) == ("From the second window.", "Mine")


async def test_a_picture_is_stored_and_named_in_the_text(writer: Browser, content: Path) -> None:
    """It stands where the cursor was; without one, at the end."""
    shown = await writer.get(NEW)
    sent = ("My Store.JPG", picture())
    saved = await send(writer, shown, title="Two", text="Above.\n\nBelow.", at="6", picture=sent)
    assert saved.status == 303, saved.said
    shown = await writer.get(saved.page)
    assert fields_of(shown)["text"].strip() == "Above.\n\n![](/images/my-store.jpg)\n\nBelow."
    assert (content.parent / "images/my-store.jpg").exists()
    await send(writer, shown, photo=("b.jpg", picture("blue")))
    assert fields_of(await writer.get(saved.page))["text"].strip().endswith("![](/images/b.jpg)")


@pytest.mark.parametrize("megabytes", [21, 30])
async def test_a_picture_that_is_too_large_loses_no_text(writer: Browser, megabytes: int) -> None:
    """The limit is named, and the form has what was typed."""
    shown = await writer.get(NEW)
    large = ("store.jpg", b"\xff\xd8\xff" + bytes(megabytes * 1024 * 1024))
    refused = await send(writer, shown, picture=large, title="Two", text="A long text.")
    assert refused.status == 400
    assert "20 MB" in refused.said
    assert (fields_of(refused)["title"].strip(), fields_of(refused)["text"].strip()) == (
        "Two",
        "A long text.",
    )


async def test_a_file_that_is_no_picture_loses_no_text(writer: Browser) -> None:
    """The page says what can be sent."""
    refused = await send(writer, await writer.get(NEW), text="Kept.", picture=("x.jpg", b"<svg/>"))
    assert (refused.status, "JPEG" in refused.said) == (400, True)
    assert fields_of(refused)["text"].strip() == "Kept."


async def test_agents_drafts_come_first(writer: Browser) -> None:
    """Each with its three buttons; Today counts them; Bin removes one."""
    await send(writer, await writer.get(NEW), title="Mine", text="My own.")
    source = await draft(writer.edge, "# By an agent\n\nRead me.\n")
    shown = await writer.get(LIST)
    assert [each.text() for each in shown.tree.css(".who")] == ["By an agent", "Mine"]
    assert len(shown.tree.css(".post .presses")) == 1
    assert "test, to be read" in shown.said
    assert len(shown.tree.css("main .button:not(.quiet)")) == 1
    assert "1 draft to read" in (await writer.get("/desk/")).said
    assert (await writer.post(f"{LIST}by-an-agent/bin/", base="0" * 40)).status == 412
    binned = await writer.post(f"{LIST}by-an-agent/bin/", base=source["version"])
    shown = await writer.get(binned.to)
    assert "By an agent" not in shown.said
    versions = await writer.get(str(shown.one(".notice a").attributes["href"]))
    former = await writer.get(str(versions.one(".sentences a").attributes["href"]))
    assert "Read me." in fields_of(former)["text"]
    assert (await send(writer, former)).page == f"{LIST}by-an-agent/"
    assert "test, to be read" in (await writer.get(LIST)).said  # it is an agent's as before


async def test_the_address_of_a_draft_can_be_changed(writer: Browser, content: Path) -> None:
    """The draft moves; an address that another post has is refused, and that of a public post."""
    shown = await writer.get(
        (await send(writer, await writer.get(NEW), text="Without a title.")).page
    )
    assert re.fullmatch(r"draft-\d{8}-\d{6}", str(fields_of(shown)["slug"]))
    moved = await send(writer, shown, title="Named now")
    assert moved.page == f"{LIST}named-now/"
    shown = await writer.get(moved.page)
    taken = await send(writer, shown, slug="the-first")
    assert (taken.status, "Another post has this address" in taken.said) == (400, True)
    assert (await send(writer, shown, slug="better")).page == f"{LIST}better/"
    assert names(content) == ["better.md", "the-first.md"]
    public = await send(writer, await writer.get(f"{LIST}the-first/"), slug="other")
    assert (public.status, "Readers know this address" in public.said) == (400, True)


async def test_a_former_version_comes_back(writer: Browser) -> None:
    """The history opens it in the form; saving makes it the present one."""
    to = (await send(writer, await writer.get(NEW), title="Two", text="First words.")).page
    await send(writer, await writer.get(to), text="Second words.")
    history = await writer.get(f"{to}history/")
    former = str(history.tree.css(".sentences a")[-1].attributes["href"])
    shown = await writer.get(former)
    assert fields_of(shown)["text"].strip() == "First words."
    assert (await send(writer, shown)).status == 303
    assert fields_of(await writer.get(to))["text"].strip() == "First words."


async def test_a_post_is_published_at_a_time_or_not_yet(writer: Browser) -> None:
    """A time in the past and no time are refused with the form."""
    to = (await send(writer, await writer.get(NEW), title="Two", text="Words.")).page
    page = await writer.get(f"{to}publish/")
    base = str(page.one("[name=base]").attributes["value"])
    for at, said in (("", "Choose the day"), ("2001-01-01T10:00", "is past")):
        refused = await writer.post(f"{to}publish/", base=base, when="at", at=at)
        assert (refused.status, said in refused.said) == (400, True)
    await writer.post(f"{to}publish/", base=base, when="at", at="2099-01-01T10:00")
    assert "Scheduled" in (await writer.get(LIST)).said
    assert "will be at" in (await writer.get(f"{to}publish/")).said


async def test_an_error_keeps_a_post_from_being_published(writer: Browser) -> None:
    """The page names the line and has no button."""
    to = (await send(writer, await writer.get(NEW), title="Two", date="whenever")).page
    page = await writer.get(f"{to}publish/")
    assert "whenever" in page.one(".findings .is-bad").text()
    assert page.tree.css_first("[name=when]") is None


async def test_what_others_wrote_is_text(writer: Browser) -> None:
    """Title, tags, text, findings and names of an agent are escaped on each page."""
    head = f"---\ntitle: '{HOSTILE.replace(chr(39), chr(39) * 2)}'\ntags: ['{HOSTILE[:20]}']\n---\n"
    text = f"</textarea>{HOSTILE}\n\n[x]({HOSTILE})\n"
    source = await draft(writer.edge, f"{head}\n{text}", slug="hostile")
    for path in ("", "hostile/", "hostile/publish/", "?q=%3Cscript%3Ealert(1)%3C/script%3E"):
        shown = await writer.get(f"{LIST}{path}")
        assert shown.status == 200
        assert "<script>alert" not in shown.text
        assert "<img src=x" not in shown.text
        assert not shown.tree.css("[onerror]")
    stale = {"base": "0" * 40, "text": text, "title": HOSTILE, "slug": HOSTILE, "at": HOSTILE}
    refused = await writer.post(f"{LIST}hostile/", **{**stale, "was.slug": HOSTILE, "head": text})
    assert refused.status in (400, 412)
    assert "<script>alert" not in refused.text
    assert source["author"] == "test"


@pytest.mark.parametrize(
    "slug", ["..%2f..%2fetc", "a%00b", "%ff", "x" * 300, "a%5cb", "%2fetc%2fpasswd"]
)
async def test_no_address_leaves_the_folder(writer: Browser, tmp_path: Path, slug: str) -> None:
    """It is refused with a page, and no file appears."""
    before = names(tmp_path, "**/*.md")
    for path in ("", "publish/", "history/"):
        shown = await writer.get(f"{LIST}{slug}/{path}")
        assert shown.status in (303, 400, 404), path
    form = {"title": "x", "text": "y", "slug": slug, "was.slug": ""}
    assert (await writer.post(NEW, **form)).status == 400
    assert names(tmp_path, "**/*.md") == before


@pytest.mark.parametrize("name", ["../../x.jpg", "/etc/x.jpg", ".jpg", "a" * 300])
async def test_no_picture_leaves_the_folder(writer: Browser, content: Path, name: str) -> None:
    """The name of a file is only a hint."""
    saved = await send(
        writer, await writer.get(NEW), title="Two", text="", picture=(name, picture())
    )
    assert saved.status == 303, saved.said
    assert [each.parent for each in content.parent.rglob("*.jpg")] == [content.parent / "images"]


async def test_a_form_without_the_desks_token_writes_nothing(
    writer: Browser, content: Path
) -> None:
    """Multipart as well: neither text nor picture is stored."""
    shown = await writer.get(NEW)
    sent = {"title": "Two", "text": "x", "picture": ("a.jpg", picture())}
    refused = await send(writer, shown, **{**sent, HIDDEN_FIELD: "a.b"})
    assert refused.status == 403
    stranger = await Browser(writer.edge).ask(
        "POST", NEW, data=b"--x\r\n", headers={"Content-Type": "multipart/form-data; boundary=x"}
    )
    assert stranger.status in (400, 403)
    assert names(content) == ["the-first.md"]
    assert not (content.parent / "images").exists()


async def test_a_text_outlives_a_lost_session(writer: Browser, content: Path) -> None:
    """A long text too: it is sent again after the sign-in."""
    shown, text = await writer.get(NEW), "ä" * 100_000
    sessions = writer.edge.service[Sessions]
    await sessions.revoke((await sessions.all())[0]["id"], OWNER)
    lost = await send(writer, shown, title="Two", text=text, picture=("a.jpg", picture()))
    assert (lost.status, "What you typed is kept" in lost.said) == (401, True)
    hidden = {
        str(each.attributes["name"]): each.attributes.get("value") or ""
        for each in lost.one("form").css("input[type=hidden]")
    }
    resumed = await writer.post("/desk/sign-in/", key=await writer.edge.key(), **hidden)
    form = {
        str(each.attributes["name"]): each.attributes.get("value") or ""
        for each in resumed.one(f'form[action="{NEW}"]').css("input")
    }
    assert (await writer.post(NEW, **form)).status == 303
    assert text in (content.parent.parent / "drafts/two.md").read_text()


async def test_without_a_watcher_the_text_is_kept(make_edge: EdgeMaker) -> None:
    """The page says that nothing was saved, and has the form as it was typed."""
    async with make_edge(WRITING="on") as running:
        browser = await Browser(running).sign_in(await running.key())
        shown = await browser.get(NEW)
        refused = await send(browser, shown, title="Two", text="Kept.")
        assert (refused.status, "nothing was saved" in refused.said) == (503, True)
        assert fields_of(refused)["text"].strip() == "Kept."
        assert "to read" not in (await browser.get("/desk/")).said


async def test_the_entry_is_for_those_who_may_draft(make_edge: EdgeMaker) -> None:
    """It is absent where writing is off; a key without the scope gets a sentence."""
    async with make_edge(WRITING="on") as running:
        reader = await Browser(running).sign_in(await running.key("admin:read"))
        assert "Posts" not in (await reader.get("/desk/")).one("nav").text()
        assert (await reader.get(LIST)).status == 403
        owner = await Browser(running).sign_in(await running.key())
        names = [each.text() for each in (await owner.get("/desk/")).tree.css("nav a")]
        assert names[1:4] == ["Today", "Posts", "Inbox"]
    async with make_edge() as running:
        owner = await Browser(running).sign_in(await running.key())
        assert "Posts" not in (await owner.get("/desk/")).one("nav").text()
        assert (await owner.get(LIST)).status == 503


async def test_who_may_draft_alone_publishes_nothing(writer: Browser) -> None:
    """There is no button, and the action is refused."""
    key = await writer.edge.key("admin:read", "posts:draft")
    drafter = await Browser(writer.edge).sign_in(key)
    to = (await send(drafter, await drafter.get(NEW), title="Two", text="Words.")).page
    shown = await drafter.get(to)
    assert "Publish…" not in shown.text
    assert "Share it" not in shown.text
    assert (await send(drafter, shown, do="share")).status == 403
    base = fields_of(shown)["base"]
    for action in ("publish", "withdraw"):
        assert (await drafter.post(f"{to}{action}/", base=base)).status == 403
    public = await drafter.get(f"{LIST}the-first/")
    assert (await send(drafter, public, text="Mine now.")).status == 403


async def test_the_preview_of_a_draft_can_send_nothing(
    make_edge: EdgeMaker, tmp_path: Path, content: Path
) -> None:
    """It is the real page, for those who are signed in; no form in it gets the desk's token."""
    run_build(content.parent, tmp_path / "build", site_url=SITE_URL)
    folders = {"CONTENT_DIR": str(content.parent), "BUILD_DIR": str(tmp_path / "build")}
    form = '<form method="post" action="/desk/leads/mark/"><button>Press</button></form>'
    async with make_edge(WRITING="on", **folders) as running:
        with writing(tmp_path, content.parent, tmp_path / "build"):
            browser = await sign_in_owner(running)
            shown = await browser.get(NEW)
            sent = {"title": "Two", "text": f"Seen as it is.\n\n{form}\n", "do": "preview"}
            saved = await send(browser, shown, **sent)
            assert saved.page.startswith(f"{LIST}two/preview/"), saved.said
            preview = await browser.get(saved.page)
            for path in (f"{saved.page}share.json", f"{saved.page}%2e%2e", f"{LIST}two/preview/x/"):
                assert (await browser.get(path)).status == 404, path
            stranger = await Browser(running).get(saved.page)
    assert (preview.status, "Seen as it is." in preview.text) == (200, True)
    assert "form-action 'none'" in preview.headers["Content-Security-Policy"]
    assert preview.headers.getall("X-Robots-Tag") == ["noindex, nofollow"]
    assert HIDDEN_FIELD not in preview.text
    assert stranger.status == 303


async def test_a_post_may_be_called_new(writer: Browser) -> None:
    """The address of the empty form does not hide it."""
    await draft(writer.edge, "# New\n\nA text.\n")
    href = str((await writer.get(LIST)).one(".who").attributes["href"])
    shown = await writer.get(href)
    assert fields_of(shown)["text"].strip() == "A text."
    assert (await send(writer, shown, text="Another text.")).page == href


@pytest.mark.parametrize("name", ["draft-20260601-120000", "two"])
async def test_an_agents_draft_that_is_renamed_stays_the_agents(
    writer: Browser, content: Path, name: str
) -> None:
    """A draft without a name of its own moves with the first save, and its form is not trusted."""
    form = '<form method="post" action="/desk/leads/mark/"><button>Press</button></form>'
    await draft(writer.edge, f"---\ntitle: Read me\n---\n\n{form}\n", slug=name)
    shown = await writer.get(f"{LIST}{name}/")
    chosen = {} if name.startswith("draft-") else {"slug": "read-me"}
    moved = await send(writer, shown, do="preview", **chosen)
    assert (moved.status, "HTML that only the owner can publish" in moved.said) == (409, True)
    assert names(content) == ["the-first.md"]
    assert "test, to be read" in (await writer.get(LIST)).said


async def test_a_boundary_of_other_bytes_is_read(writer: Browser) -> None:
    """It is no fault of the service, whoever sends it."""
    kind = b"multipart/form-data; boundary=\xff\xfe".decode(errors="surrogateescape")
    shown = await writer.ask("POST", NEW, data=b"x", headers={**writer.own, "Content-Type": kind})
    assert shown.status == 403


async def test_a_draft_that_is_changed_while_it_is_read_is_not_published(writer: Browser) -> None:
    """The agent saves another text after the owner has opened the first one."""
    source = await draft(writer.edge, "# Two\n\nRead me.\n")
    shown, key = await writer.get(f"{LIST}two/"), await writer.edge.key("posts:draft")
    text = source["markdown"].replace("Read me", "Buy this")
    changed = {
        "json": {"slug": "two", "markdown": text},
        "headers": {"If-Match": source["version"]},
    }
    async with writer.edge.ask("POST", PATH, key, **changed) as answer:
        assert answer.status == 200, await answer.text()
    for button in ("preview", "share"):
        assert (await send(writer, shown, do=button)).status == 412
    to = (await send(writer, shown, do="publish")).to
    assert (await writer.get(to)).status == 412
    opened = await send(writer, await writer.get(f"{LIST}two/"), do="publish")
    assert (await writer.get(opened.to)).status == 200
