"""Previews and shares of stored texts, made by the process that writes."""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from selectolax.lexbor import LexborHTMLParser

from edge_api.schema.shares import PREVIEWS, find_shared
from edge_api.schema.writing import Spool, WriteAnswer, WriteRequest
from tests.patience import patience
from tests.site_build.workbench import SITE_URL, Workbench, find, run_build, take

pytestmark = pytest.mark.size("test")
DRAFT = "# Two winters\n\nThe **store** has stood. See [early](/journal/early/).\n"


class Writer:
    """The process that writes, and the folder of its spool."""

    def __init__(self, bench: Workbench) -> None:
        self.bench, self.var = bench, bench.output.parent / "var"
        self.var.mkdir()
        self.spool = Spool(self.var)
        words = [sys.executable, "-m", "site_build.writing.process"]
        words += [str(bench.content), str(bench.output), SITE_URL]
        given = {**os.environ, "DATABASE_URL": f"sqlite:///{self.var}/edge.db"}
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, env=given)
        deadline = time.monotonic() + patience()
        while not self.spool.is_watched():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def put(self, operation: Any, author: str = "", **values: Any) -> str:
        """Ask for something."""
        given = {"may_publish": True, "asked_at": datetime.now(UTC), **values}
        return self.spool.put(WriteRequest(operation=operation, author=author, **given))

    def wait(self, name: str) -> WriteAnswer:
        """Return the answer to a request."""
        deadline = time.monotonic() + patience()
        while not (answer := self.spool.take(name)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return answer

    def ask(self, operation: Any, author: str = "", **values: Any) -> WriteAnswer:
        """Ask for something, and return the answer."""
        return self.wait(self.put(operation, author, **values))


@pytest.fixture
def writer(bench: Workbench) -> Iterator[Writer]:
    """Return the process that writes, for a small journal that was built."""
    bench.post("early", status="draft")
    bench.post("late")
    done = run_build(bench)
    assert done.returncode == 0, done.stderr
    running = Writer(bench)
    yield running
    assert running.process.stdin is not None
    running.process.stdin.close()
    running.process.wait()


def read(writer: Writer, token: str, name: str = "index.html", days: int = 0) -> bytes:
    """Return a file of a preview as somebody gets it after this many days."""
    now = datetime.now(UTC) + timedelta(days=days)
    return find_shared(writer.bench.output, token, name, now, PREVIEWS).read_bytes()


@pytest.mark.parametrize("author", ["", "Claude"])
def test_a_draft_is_shown_as_its_page_for_a_day(writer: Writer, author: str) -> None:
    """It has the draft's words and picture; the content and the shares stay as they were."""
    file = BytesIO()
    Image.new("RGB", (40, 30), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    picture = writer.ask("picture", author, name="red.png", data=data)
    text = f"{DRAFT}\n![A red thing]({picture.path})\n"
    saved = writer.ask("save", author, markdown=text)
    before = take(writer.bench.content)
    answer = writer.ask("preview", slug="two-winters")

    assert answer.refusal == "", answer.message
    page = read(writer, answer.path).decode()
    assert "The <strong>store</strong> has stood." in page
    assert 'content="noindex"' in page
    assert "Shared draft" not in page
    source = find(LexborHTMLParser(page), "img[alt='A red thing']").attributes["src"]
    assert source is not None
    assert read(writer, answer.path, source).startswith(b"\x89PNG")
    assert take(writer.bench.content) == before
    assert writer.ask("get", slug="two-winters").version == saved.version
    assert not (writer.bench.output / "shares").exists()
    with pytest.raises(FileNotFoundError):
        read(writer, answer.path, days=1)
    with pytest.raises(FileNotFoundError):
        read(writer, answer.path, "share.json")


def test_a_change_of_a_public_post_is_shown_before_it_is_published(writer: Writer) -> None:
    """The preview has the draft, and the site the published text."""
    found = writer.ask("get", slug="late")
    assert found.source is not None, found.message
    text = f"{found.source.markdown}\nA later thought.\n"
    writer.ask("save", slug="late", markdown=text, base=found.version)
    answer = writer.ask("preview", slug="late")
    assert "A later thought." in read(writer, answer.path).decode()


def test_a_share_is_there_for_seven_days(writer: Writer) -> None:
    """It says that it is a draft, and is listed as one that the command made."""
    writer.ask("save", markdown=DRAFT)
    answer = writer.ask("share", slug="two-winters")
    later = datetime.now(UTC) + timedelta(days=6, hours=23)
    page = find_shared(writer.bench.output, answer.path, "index.html", later).read_text()
    assert "This is a draft" in page
    with pytest.raises(FileNotFoundError):
        read(writer, answer.path)


def test_html_of_a_credential_is_not_shown(writer: Writer) -> None:
    """The refusal has the line of what only the owner may write."""
    writer.ask("save", "Claude", markdown=f"{DRAFT}\n<form action='/desk/'>x</form>\n")
    for operation in ("preview", "share"):
        answer = writer.ask(operation, slug="two-winters")
        assert answer.refusal == "conflict"
        assert [each.line for each in answer.findings if "<form" in each.message] == [10]
    assert not (writer.bench.output / "previews").exists()


def test_a_link_among_the_pictures_of_drafts_is_not_followed(writer: Writer) -> None:
    """A preview shows no file of elsewhere that a link or a path names."""
    secret = writer.var / "secret.png"
    secret.write_bytes(b"secret")
    (writer.var / "drafts/images").mkdir(parents=True)
    (writer.var / "drafts/images/link.png").symlink_to(secret)
    (writer.var / "drafts/linked").symlink_to(writer.var)
    names = "![](/images/link.png) ![](/linked/secret.png) ![](/images/../../secret.png)"
    writer.ask("save", "Claude", markdown=f"{DRAFT}\n{names}\n")
    answer = writer.ask("preview", slug="two-winters")
    assert answer.refusal == "", answer.message
    shown = take(writer.bench.output / "previews").values()
    assert not any(data == b"secret" for data in shown)


def test_saves_go_on_while_a_page_is_made(writer: Writer) -> None:
    """What was asked for later is answered before."""
    saved = writer.ask("save", markdown=DRAFT)
    pages = [writer.put("preview", slug="two-winters") for _ in range(2)]
    later = writer.ask("save", slug="two-winters", markdown=f"{DRAFT}More.\n", base=saved.version)
    assert later.refusal == ""
    assert not any((writer.spool.folder / f"{each}.answer").exists() for each in pages)
    assert len({writer.wait(each).path for each in pages} - {""}) == 2


def test_a_text_that_cannot_be_shown_is_named(writer: Writer) -> None:
    """A head that cannot be read has no page."""
    writer.bench.write("posts/bad.md", "---\ntitle: [\nslug: bad\n---\n\nX\n")
    answer = writer.ask("preview", slug="bad")
    assert answer.refusal == "unavailable"
    assert "head" in answer.message
