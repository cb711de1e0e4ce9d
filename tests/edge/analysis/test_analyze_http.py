"""`POST /api/public/v1/analyze`: what it takes, what it answers, and what it refuses."""

from typing import Any

import pytest

from edge_api.analysis.analyst import Analyst, find_related
from edge_api.analysis.metrics import Keyword
from edge_api.analysis.operations import OPERATIONS
from edge_api.journal.builds import BuildManager
from tests.edge.conftest import error_of
from tests.sizes import in_ci

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PATH = "/api/public/v1/analyze"
DEFAULT_RATE = "10/minute;100/day"
MARKDOWN = (
    "# Fore-edges\n\nBinders painted on the fore-edge. Fan the pages."
    " The picture comes and goes.\n\n![](fan.png) [](/nowhere)\n"
)


async def analyze(edge: Any, **body: Any) -> Any:
    """Return the report on a document."""
    async with edge.ask("POST", PATH, json=body) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def refuse(edge: Any, **body: Any) -> tuple[int, str]:
    """Return the status and the sentence of a refusal."""
    async with edge.ask("POST", PATH, json=body) as answer:
        return answer.status, await error_of(answer)


async def test_a_document_is_measured(edge: Any) -> None:
    """The report says how much there is, of what it is made, and what to fix."""
    said = await analyze(edge, markdown=MARKDOWN)

    assert said["input"]["kind"] == "markdown"
    assert said["input"]["characters"] == len(MARKDOWN)
    assert said["metrics"]["language"] == "en"
    assert said["metrics"]["words"] == 14
    assert said["metrics"]["sentences"] == 4
    assert said["structure"]["headings"] == [{"level": 1, "text": "Fore-edges"}]
    assert said["structure"]["images"] == {"total": 1, "without_alt": 0}
    assert said["structure"]["links"] == {"total": 1, "external": 0, "without_text": 1}
    assert said["keywords"][0]["term"] == "fore-edges"
    assert said["signals"]["llms_txt"]["status"] == "skipped"
    assert {each["code"] for each in said["suggestions"]} == {"substance", "link-text"}


async def test_the_documented_example_is_true(edge: Any) -> None:
    """The answer in the OpenAPI document is what its example of a request gets."""
    (operation,) = OPERATIONS
    assert operation.body is not None

    said = await analyze(edge, **operation.body.examples["markdown"])

    assert said == operation.responses[0].example()


async def test_the_same_document_gets_the_same_report(make_edge: Any) -> None:
    """Also from another process; nothing of it depends on the time."""
    async with make_edge() as edge:
        first = await analyze(edge, markdown=MARKDOWN)
        second = await analyze(edge, markdown=MARKDOWN)
    async with make_edge() as edge:
        third = await analyze(edge, markdown=MARKDOWN)

    assert first == second == third


async def test_related_posts_come_from_the_journal(edge: Any) -> None:
    """By the words of the document; as many as wanted, and none of no words."""
    said = await analyze(edge, text="Edges of paper, painted paper edges.")
    one = await analyze(edge, text="Edges of paper, painted paper edges.", related=1)

    assert len(said["related"]) > 1
    assert all(0 < each["score"] <= 1 for each in said["related"])
    assert one["related"] == said["related"][:1]
    assert (await analyze(edge, text="Qwzx."))["related"] == []
    assert (await analyze(edge, text="Edges of paper.", related=0))["related"] == []


async def test_the_caller_chooses_the_number_of_keywords_and_posts(edge: Any) -> None:
    """As many keywords as wanted, none with 0."""
    text = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")

    assert len((await analyze(edge, text=text))["keywords"]) == 10
    assert len((await analyze(edge, text=text, keywords=20))["keywords"]) == 20
    assert (await analyze(edge, text=text, keywords=0))["keywords"] == []


async def test_language_is_given_stated_or_guessed(edge: Any) -> None:
    """The caller's language counts most, then that of the page."""
    german = "Das ist nicht der Rand, sondern die Mitte des Buches, und sie ist aus Papier."
    page = f'<html lang="fr"><title>x</title><p>{german}'

    assert (await analyze(edge, text=german))["metrics"]["language"] == "de"
    assert (await analyze(edge, html=page))["metrics"]["language"] == "fr"
    given = await analyze(edge, html=page, language="de-AT")
    assert given["metrics"]["language"] == "de-AT"
    assert given["metrics"]["flesch_reading_ease"] is not None
    assert (await analyze(edge, text="Xyzzy 1 2 3"))["metrics"]["language"] == "und"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "body: needs exactly one of text, markdown, html, url; it has none"),
        (
            {"text": "a", "html": "b"},
            "body: needs exactly one of text, markdown, html, url; it has",
        ),
        ({"text": ""}, "text: must have 1 character or more"),
        ({"text": "x" * 100_001}, "text: must have 100000 characters or fewer"),
        ({"text": None}, "text: must be a string"),
        ({"text": 5}, "text: must be a string"),
        ({"text": "a", "keywords": 21}, "keywords: must be 20 or less"),
        ({"text": "a", "keywords": -1}, "keywords: must be 0 or more"),
        ({"text": "a", "keywords": "5"}, "keywords: must be an integer"),
        ({"text": "a", "keywords": True}, "keywords: must be an integer"),
        ({"text": "a", "related": 11}, "related: must be 10 or less"),
        ({"text": "a", "language": "e"}, "language: must have 2 characters or more"),
        ({"text": "a", "language": "no language"}, "language: must be a language tag such as en"),
        ({"url": "ftp://journal.test/"}, "url: must be an http or https address in ASCII"),
        ({"url": "http://b\u00fccher.test/"}, "url: must be an http or https address in ASCII"),
        ({"url": "http://journal.test/" + "x" * 2048}, "url: must have 2048 characters or fewer"),
    ],
)
async def test_bad_input_is_reported_in_a_sentence(
    edge: Any, body: dict[str, Any], message: str
) -> None:
    """400, which names the member and what to fix."""
    status, said = await refuse(edge, **body)

    assert status == 400
    assert said.startswith(message)


async def test_bodies_have_a_limit_and_a_type(edge: Any) -> None:
    """More than 128 KiB is 413, another type than JSON 415."""
    async with edge.ask("POST", PATH, json={"text": "\u00e9" * 70_000}) as answer:
        assert answer.status == 413
    async with edge.ask("POST", PATH, data=b"text=a", headers={"Content-Type": "text/plain"}) as it:
        assert it.status == 415
    async with edge.ask("GET", PATH) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST, OPTIONS")


async def test_a_page_of_the_site_is_read_in_process(edge: Any) -> None:
    """Page, twin and text file by their address, and what the origin says of itself."""
    page = await analyze(edge, url="http://journal.test/journal/first-edge/")
    again = await analyze(edge, url="http://JOURNAL.test:80/journal/first-edge?x=1#y")
    twin = await analyze(edge, url="http://journal.test/journal/first-edge/index.md")
    text = await analyze(edge, url="http://journal.test/llms.txt")

    assert [it["input"]["kind"] for it in (page, twin, text)] == ["html", "markdown", "text"]
    assert page["metrics"] == again["metrics"]
    assert page["signals"]["llms_txt"]["score"] == 100
    assert page["signals"]["protocol_discovery"]["score"] == 100
    assert page["signals"]["structured_data"]["status"] != "skipped"
    assert "first-edge" not in {post["slug"] for post in page["related"]}


@pytest.mark.parametrize(
    "spelling",
    [
        "/journal/first-edge/",
        "/journal/first-edge",
        "/journal/first-edge/index.html",
        "/journal/first-edge/#x",
        "/journal/first-edge/?a=1",
        "/journal/first-edge?a=1#x",
        *in_ci(
            "/journal/first-edge/index.md",
            "/journal/first-edge/index.md#x",
            "/journal/%66irst-edge/",
            "/%6aournal/first-edge",
        ),
    ],
)
async def test_a_post_is_not_related_to_itself(edge: Any, spelling: str) -> None:
    """However its address is spelled, whose usual spelling the report has."""
    said = await analyze(edge, url=f"HTTP://journal.test{spelling}", related=10)
    twin = "index.md" if "index.md" in spelling else ""

    assert said["input"]["url"] == f"http://journal.test/journal/first-edge/{twin}"
    async with edge.ask("GET", "/journal/first-edge/") as page:
        report = await analyze(edge, html=await page.text(), related=10)
    assert "first-edge" in {post["slug"] for post in report["related"]}, "where nobody knows"
    assert "first-edge" not in {post["slug"] for post in said["related"]}


async def test_the_page_itself_takes_no_place_of_a_related_post(edge: Any) -> None:
    """As many are found as are wanted, though it fits best."""
    build, keywords = edge.service[BuildManager].current, [Keyword("paper", 1, 1.0)]
    first, second = await find_related(build, keywords, 2)

    assert await find_related(build, keywords, 1, first.url) == [second]


async def test_a_stated_language_is_checked(edge: Any) -> None:
    """An invalid tag is not repeated: the language of the text is detected."""
    for stated, tag in (("x" * 90_000, "en"), ("DE_ch", "de-CH"), ("<b>", "en")):
        page = f"<html lang='{stated}'><p>The edge of the book was painted."
        assert (await analyze(edge, html=page))["metrics"]["language"] == tag


@pytest.mark.parametrize(
    ("mode", "url", "status"),
    [
        ("self", "http://journal.test/no-such-page/", 422),
        ("self", "http://journal.test/theme/", 422),
        ("self", "http://journal.test/../../etc/passwd", 422),
        ("self", "http://elsewhere.test/", 403),
        ("self", "https://journal.test/", 403),
        ("self", "http://journal.test:8080/", 403),
        ("self", "http://journal.test@elsewhere.test/", 403),
        ("self", "http://someone@journal.test/", 403),
        ("self", "http://[", 403),
        ("self", "http://journal.test:99999/", 403),
        ("off", "http://journal.test/", 403),
    ],
)
async def test_urls_that_may_not_be_read_are_refused(
    make_edge: Any, mode: str, url: str, status: int
) -> None:
    """403 where the operator forbids reading them, 422 where there is nothing."""
    async with make_edge(ANALYZE_FETCH=mode) as edge:
        said = await refuse(edge, url=url)

    assert said[0] == status
    assert said[1].startswith("url: ")


async def test_the_rate_limit_is_ten_a_minute(make_edge: Any) -> None:
    """The eleventh document of an address is 429, with a Retry-After that is true."""
    async with make_edge(RATE_ANALYZE=DEFAULT_RATE) as edge:
        for _ in range(10):
            await analyze(edge, text="Once more.")
        async with edge.ask("POST", PATH, json={"text": "Too much."}) as answer:
            assert answer.status == 429
            assert 1 <= int(answer.headers["Retry-After"]) <= 60
            assert answer.headers["RateLimit-Policy"] == (
                '"analyze";q=10;w=60, "analyze-day";q=100;w=86400'
            )


async def test_without_a_journal_documents_are_analysed(make_edge: Any, tmp_path: Any) -> None:
    """Nothing is related then, and no page can be read."""
    async with make_edge(BUILD_DIR=str(tmp_path)) as edge:
        assert (await analyze(edge, text="Edges of paper."))["related"] == []
        assert (await refuse(edge, url="http://journal.test/"))[0] == 503


async def test_nothing_submitted_is_logged(
    make_edge: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither when all goes well nor when it does not."""
    async with make_edge() as edge:
        await analyze(edge, text="xylophone xylophone")
        await refuse(edge, text="xylophone", html="xylophone")
        await edge.service[Analyst].pool.close()
        assert (await refuse(edge, text="xylophone"))[0] == 503

    assert "xylophone" not in caplog.text
