"""The contact form over HTTP, on a real build: taken, shown again, and closed to other sites."""

import asyncio
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import ClientResponse
from selectolax.lexbor import LexborHTMLParser, LexborNode

from site_build.pelican_plugin import settings as site_settings
from site_build.releases.release import BuildOptions, build
from tests.edge.conftest import CONTENT
from tests.edge.edge_process import ROOT
from tests.page_scripts import has_own_scripts_alone

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

PATH = "/contact/"
GOOD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "Not decided yet",
    "message": "Hello,\r\ntell me about edges.",
    "_gotcha": "",
}
PELICAN_SETTINGS = """\
from pelicanconf import *
THEME = {theme!r}
BUDGET_TIERS = ["Up to 5,000", "Not decided yet"]
"""
SCRIPT = {"Accept": "application/json"}
HOSTILE = "\"'><script>alert(1)</script></textarea></select>{{ 7*7 }}"


async def send(edge: Any, fields: Any, **headers: str) -> tuple[ClientResponse, LexborHTMLParser]:
    """Post a form; return the answer and its page."""
    async with edge.ask("POST", PATH, data=fields, headers=headers) as answer:
        return answer, LexborHTMLParser(await answer.read())


async def leads(edge: Any) -> list[Any]:
    """Return every stored lead."""
    async with edge.ask("GET", "/api/public/v1/admin/leads", await edge.key()) as answer:
        return list(await answer.json())


def find(page: LexborHTMLParser, selector: str) -> LexborNode:
    """Return the first node that fits; there must be one."""
    node = page.css_first(selector)
    assert node is not None, selector
    return node


def fault(page: LexborHTMLParser, field: str) -> str:
    """Return what the page says of a field."""
    node = page.css_first(f"#{field}-fault")
    return node.text() if node else ""


async def test_a_form_becomes_a_lead(edge: Any) -> None:
    """A form that is filled in well is stored and leads to the thanks, which are there."""
    answer, _ = await send(edge, GOOD)

    assert (answer.status, answer.headers["Location"]) == (303, "/contact/thanks/")
    assert answer.headers["Cache-Control"] == "no-store"
    async with edge.ask("GET", answer.headers["Location"]) as thanks:
        assert thanks.status == 200
    (lead,) = await leads(edge)
    assert (lead["name"], lead["source"], lead["status"]) == ("Ann Lee", "form", "new")
    assert lead["message"] == "Hello,\ntell me about edges."


async def test_consent_is_kept_with_its_words(edge: Any) -> None:
    """A ticked box is kept with what it said and when; an empty one leaves nothing."""
    await send(edge, {**GOOD, "consent": "on", "consent_text": "You may write."})
    await send(edge, {**GOOD, "consent_text": "You may write."})

    kept = sorted((lead["consent_text"] or "", lead["consent_at"]) for lead in await leads(edge))
    assert [words for words, _ in kept] == ["", "You may write."]
    assert kept[0][1] is None
    assert kept[1][1] is not None


async def test_a_script_gets_the_answers_of_the_api(edge: Any) -> None:
    """Asked for JSON, the form answers as the API does, and the lead is still one by the form."""
    async with edge.ask("POST", PATH, data=GOOD, headers=SCRIPT) as answer:
        assert (answer.status, answer.content_type) == (201, "application/json")
        assert answer.headers["Cache-Control"] == "no-store"
        taken = await answer.json()
    (lead,) = await leads(edge)

    assert taken["lead"]["id"] == taken["id"] == lead["id"]
    assert taken["lead"]["message"] == "Hello,\ntell me about edges."
    assert lead["source"] == "form"


async def test_a_script_gets_every_fault_at_once(edge: Any) -> None:
    """An Error names each field at fault, followed by its sentence."""
    fields = {**GOOD, "name": " ", "email": "ann at example"}
    async with edge.ask("POST", PATH, data=fields, headers=SCRIPT) as answer:
        assert answer.status == 400
        assert await answer.json() == {
            "error": "name: must not be empty; email: not a valid e-mail address"
        }
    assert await leads(edge) == []


async def test_a_script_may_send_again(edge: Any) -> None:
    """With the key of its first attempt a form is stored once; with another form it is 422."""
    headers = {**SCRIPT, "Idempotency-Key": "k-1"}
    ids = []
    for _ in range(2):
        async with edge.ask("POST", PATH, data=GOOD, headers=headers) as answer:
            assert answer.status == 201
            ids.append((await answer.json())["id"])
    assert answer.headers["Idempotency-Replayed"] == "true"
    assert ids[0] == ids[1]
    async with edge.ask("POST", PATH, data={**GOOD, "name": "B"}, headers=headers) as answer:
        assert answer.status == 422
    assert len(await leads(edge)) == 1


async def test_a_form_that_is_pressed_twice_is_one_lead(edge: Any) -> None:
    """Also twenty times at once, as by a page that seems to hang; each press gets the thanks."""
    answers = [await send(edge, GOOD), await send(edge, GOOD)]
    answers += await asyncio.gather(*(send(edge, GOOD) for _ in range(20)))

    assert {answer.status for answer, _ in answers} == {303}
    assert len(await leads(edge)) == 1


@pytest.mark.parametrize("name", ["name", "email", "budget_tier", "message", "consent"])
async def test_a_form_that_is_edited_is_another_lead(edge: Any, name: str) -> None:
    """Two messages from one page are both stored, whichever field differs."""
    await send(edge, GOOD)
    answer, _ = await send(edge, {**GOOD, name: "on" if name == "consent" else f"x{GOOD[name]}"})

    assert answer.status == 303
    assert len(await leads(edge)) == 2


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/json", "application/json"),
        ("application/json, text/html;q=0.5", "application/json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
        ("text/html, application/json;q=0.9", "text/html"),
        ("text/html, application/json", "text/html"),
        ("*/*", "text/html"),
        ("", "text/html"),
    ],
)
async def test_a_page_is_answered_unless_json_is_named(
    edge: Any, accept: str, content_type: str
) -> None:
    """A browser that navigates gets a page."""
    async with edge.ask("POST", PATH, data={}, headers={"Accept": accept}) as answer:
        assert (answer.status, answer.content_type) == (400, content_type)


async def test_a_script_of_another_site_is_refused(edge: Any) -> None:
    """JSON is no way around the guard of the form."""
    headers = {**SCRIPT, "Sec-Fetch-Site": "cross-site"}
    async with edge.ask("POST", PATH, data=GOOD, headers=headers) as answer:
        assert answer.status == 403
    assert await leads(edge) == []


async def test_a_form_with_faults_comes_back(edge: Any) -> None:
    """Each error is shown at its field, all at once; what was typed stays; nothing is stored."""
    fields = {**GOOD, "name": " ", "email": "ann at example", "message": "x" * 2001}
    answer, page = await send(edge, fields)

    assert (answer.status, answer.content_type) == (400, "text/html")
    assert fault(page, "name") == "Must not be empty."
    assert fault(page, "email") == "Not a valid e-mail address."
    assert fault(page, "message") == "2,001 of 2,000 characters: shorten it by 1."
    assert fault(page, "budget_tier") == ""
    assert find(page, "#email").attributes["value"] == "ann at example"
    assert find(page, "[name=budget_tier]").attributes["value"] == "No budget: a question"
    assert find(page, "#message").text().strip() == "x" * 2001
    assert find(page, "nav").text()
    assert answer.headers["Cache-Control"] == "no-store"
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert await leads(edge) == []


async def test_a_listed_budget_stays_chosen(
    make_edge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the site lists budgets, the returned form has them and the one that was sent."""
    settings = tmp_path / "listed.py"
    settings.write_text(PELICAN_SETTINGS.format(theme=str(ROOT / "theme")), encoding="utf-8")
    monkeypatch.setattr(site_settings, "SETTINGS_FILE", settings)
    builds, now = tmp_path / "builds", datetime(2026, 6, 1, tzinfo=UTC)
    build(BuildOptions(CONTENT, builds, "http://journal.test", now, jobs=1))
    async with make_edge(BUILD_DIR=str(builds)) as edge:
        _, page = await send(edge, {**GOOD, "name": " "})

        offered = [option.text() for option in page.css("#budget_tier option")]
        assert offered == ["Choose one", "Up to 5,000", "Not decided yet"]
        assert find(page, "option[selected]").text() == GOOD["budget_tier"]
        assert (await send(edge, GOOD))[0].status == 303
        assert (await leads(edge))[0]["budget_tier"] == GOOD["budget_tier"]


async def test_the_page_is_the_built_one(edge: Any) -> None:
    """Without its form, the answer is the contact page as it was built."""
    async with edge.ask("GET", PATH) as answer:
        built = LexborHTMLParser(await answer.read())
    _, page = await send(edge, {})
    for tree in (built, page):
        find(tree, "form").decompose()

    assert str(page.html).split() == str(built.html).split()


async def test_a_post_leads_to_a_message_about_it(edge: Any) -> None:
    """Its link, without scripts, opens the form with the post's title, and the lead has it."""
    async with edge.ask("GET", "/journal/sewing-and-folding/") as answer:
        post = LexborHTMLParser(await answer.read())
    link = find(post, 'article footer a[href^="/contact/"]').attributes["href"] or ""
    async with edge.ask("GET", link) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert answer.headers["Cache-Control"] == "no-store"
        page = LexborHTMLParser(await answer.read())
    start = find(page, "#message").text().removeprefix("\n")
    assert start == 'About \u201cSewing & "folding"\u201d (/journal/sewing-and-folding/):\n\n'
    assert page.css("[aria-invalid], [role=alert]") == []

    answer, page = await send(edge, {**GOOD, "message": start})
    assert (answer.status, fault(page, "message")) == (400, "Must not be empty.")
    assert find(page, "#message").text().strip() == start.strip(), "what was typed stays"
    assert find(page, "#name").attributes["value"] == GOOD["name"]
    assert await leads(edge) == []

    await send(edge, {**GOOD, "message": f"{start}I liked it."})
    (lead,) = await leads(edge)
    assert (lead["message"], lead["status"]) == (f"{start}I liked it.", "new")


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ("about=none", "*/*"),
        ("about=a-draft", "*/*"),
        ("about=not-yet", "*/*"),
        ("about=", "*/*"),
        ("about=%3Cscript%3Ealert(1)%3C/script%3E", "*/*"),
        ("about=%00%FF", "*/*"),
        ("message=MARK&name=MARK", "*/*"),
        ("about=first-edge", "text/markdown"),
    ],
)
async def test_any_other_query_opens_the_page_as_it_is(edge: Any, query: str, accept: str) -> None:
    """A query that names no public post is ignored; nothing of it comes back."""
    bodies = []
    for path in (PATH, f"{PATH}?{query}"):
        async with edge.ask("GET", path, headers={"Accept": accept}) as answer:
            assert answer.status == 200
            bodies.append(await answer.read())
    assert bodies[0] == bodies[1]


async def test_a_closed_form_opens_with_no_message(make_edge: Any) -> None:
    """A page that was built before the form was closed shows what it shows."""
    async with (
        make_edge(LEADS_REQUIRE_CREDENTIAL="true") as edge,
        edge.ask("GET", f"{PATH}?about=first-edge") as answer,
    ):
        assert find(LexborHTMLParser(await answer.read()), "#message").text().strip() == ""


async def test_an_empty_form_asks_for_everything(edge: Any) -> None:
    """Values that a browser would not let through are reported field by field."""
    answer, page = await send(edge, {})

    assert answer.status == 400
    for field in ("name", "email", "budget_tier", "message"):
        assert fault(page, field) == "Is required."


async def test_nothing_typed_becomes_markup(edge: Any) -> None:
    """Hostile text comes back as the text it is, in every field."""
    fields = dict.fromkeys(("name", "email", "budget_tier", "message"), HOSTILE)
    answer, page = await send(edge, {**fields, "message": HOSTILE * 100})

    assert answer.status == 400
    assert has_own_scripts_alone(page)
    assert find(page, "#name").attributes["value"] == HOSTILE
    assert find(page, "#message").text().strip() == HOSTILE * 100
    assert "49" not in find(page, "form").text()


async def test_an_error_of_a_hidden_field_is_shown_above_the_form(edge: Any) -> None:
    """A field that the form does not show cannot be marked, so its error is shown above."""
    answer, page = await send(edge, {**GOOD, "consent_text": "\x07"})

    assert answer.status == 400
    assert "consent_text: Must not contain" in find(page, "[role=alert]").text()


async def test_the_honeypot_of_the_contact_form_answers_as_usual(edge: Any) -> None:
    """A machine that fills in the trap is thanked, and its lead is marked."""
    answer, _ = await send(edge, {**GOOD, "_gotcha": "x"})

    assert answer.status == 303
    assert [lead["status"] for lead in await leads(edge)] == ["spam"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://journal.test"},
        {"Origin": "https://evil.test"},
        {"Origin": "http://journal.test.evil.test"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://["},
    ],
)
async def test_a_form_from_another_site_is_refused(edge: Any, headers: dict[str, str]) -> None:
    """A form that another site's page sends in a reader's name is refused."""
    async with edge.ask("POST", PATH, data=GOOD, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (403, "text/html")
        assert "from another site" in await answer.text()
    assert await leads(edge) == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://journal.test"},
        {"Host": "other.test:8000", "Origin": "http://other.test:8000"},
        {"Host": "other.test", "Origin": "https://other.test"},
    ],
)
async def test_a_form_from_the_site_is_taken(edge: Any, headers: dict[str, str]) -> None:
    """The site's own page is known by the browser's word, or else by its origin."""
    answer, _ = await send(edge, GOOD, **headers)

    assert answer.status == 303


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"{}", "application/json", 415),
        (b"x", "multipart/form-data; boundary=x", 415),
        (b"name=%ff", "application/x-www-form-urlencoded", 400),
        (b"name=\xff", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 110, "application/x-www-form-urlencoded", 400),
        (b"name=" + b"x" * 131_072, "application/x-www-form-urlencoded", 413),
    ],
)
async def test_requests_that_no_form_sends_are_refused(
    edge: Any, body: bytes, content_type: str, status: int
) -> None:
    """Anything but a form of this size is refused: with a page, or with an Error to a script."""
    for accept in ("*/*", "text/html", "text/html, application/json", "application/json"):
        headers = {"Content-Type": content_type, "Accept": accept}
        async with edge.ask("POST", PATH, data=io.BytesIO(body), headers=headers) as answer:
            assert answer.status == status
            if accept == "application/json":
                assert list(await answer.json()) == ["error"]
            else:
                assert answer.content_type == "text/html"
                page = LexborHTMLParser(await answer.read())
                assert find(page, "main h1").text() == "This did not work"


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("character", ["x", "\u0436", "\u7d19", "\u0301\u0316"])
async def test_an_overlong_text_comes_back_with_its_error(edge: Any, character: str) -> None:
    """Up to 128 KiB, in any script, also where NFC would take the square of its length."""
    fields = {**GOOD, "message": character * (120_000 // len(quote(character)))}
    answer, page = await asyncio.wait_for(send(edge, fields, **BROWSER), 20)
    length = len(fields["message"])
    assert answer.status == 400
    assert fault(page, "message") == (
        f"{length:,} of 4,000 characters: shorten it by {length - 4000:,}."
    )
    assert find(page, "#message").text().strip() == fields["message"]
    assert find(page, "#name").attributes["value"] == GOOD["name"]
    assert "hidden" in find(page, "#message-limit").attributes, "the count is said once"
    assert "hidden" in find(page, ".field:has([name=rest])").attributes
    assert await leads(edge) == []


@pytest.mark.parametrize("path", [PATH, f"{PATH}access/", f"{PATH}access/claim/"])
async def test_an_oversized_form_is_reported_on_a_page(edge: Any, path: str) -> None:
    """A person gets a page that says what to do, and a script the same sentence."""
    kind, body = {"Content-Type": "application/x-www-form-urlencoded"}, b"message=" + b"x" * 2**17
    data = io.BytesIO(body)
    async with edge.ask("POST", path, data=data, headers={**BROWSER, **kind}) as answer:
        assert (answer.status, answer.content_type) == (413, "text/html")
        said = find(LexborHTMLParser(await answer.read()), "main").text()
    assert "Nothing was sent, as this is far too long: go back to what you typed" in said
    data = io.BytesIO(body)
    async with edge.ask("POST", path, data=data, headers={**SCRIPT, **kind}) as answer:
        assert answer.status == 413
        assert "far too long" in (await answer.json())["error"]


async def test_a_form_from_another_site_is_refused_on_a_page(edge: Any) -> None:
    """Errors that come before the form's own page are no JSON for a person either."""
    headers = {**BROWSER, "Sec-Fetch-Site": "cross-site"}
    async with edge.ask("POST", PATH, data=GOOD, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (403, "text/html")
        assert "from another site" in await answer.text()


async def test_a_repeated_field_counts_once(edge: Any) -> None:
    """The last value of a field that is sent twice is taken, as forms on the web do."""
    answer, _ = await send(edge, [("name", "First"), *GOOD.items()])

    assert answer.status == 303
    assert [lead["name"] for lead in await leads(edge)] == ["Ann Lee"]


async def test_the_rate_limit_is_reported_on_the_page(make_edge: Any) -> None:
    """Over the limit the form comes back with the reason and what was typed, and 429."""
    async with make_edge(RATE_LEADS="1/hour") as edge:
        await send(edge, GOOD)
        answer, page = await send(edge, {**GOOD, "name": "Ben"})

        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) > 0
        assert find(page, "#name").attributes["value"] == "Ben"
        assert find(page, "[role=alert]").text()
        assert len(await leads(edge)) == 1


async def test_attempts_are_counted_as_in_the_api(make_edge: Any) -> None:
    """Forms that are refused count against the limit of attempts, which both doors share."""
    async with make_edge(RATE_LEADS_ATTEMPTS="2/hour") as edge:
        assert [(await send(edge, {}))[0].status for _ in range(3)] == [400, 400, 429]
        async with edge.ask("POST", "/api/public/v1/leads", json=GOOD) as answer:
            assert answer.status == 429


async def test_a_closed_form_says_so(make_edge: Any) -> None:
    """If leads need a credential, the page says that the form is closed."""
    async with make_edge(LEADS_REQUIRE_CREDENTIAL="true") as edge:
        answer, page = await send(edge, GOOD)

        assert answer.status == 403
        assert "closed" in find(page, "[role=alert]").text()


async def test_an_unavailable_store_is_reported_on_the_page(edge: Any) -> None:
    """While leads cannot be kept, the form comes back with 503 and nothing is lost of it."""
    await edge.service.store.close()
    answer, page = await send(edge, GOOD)

    assert answer.status == 503
    assert find(page, "#name").attributes["value"] == "Ann Lee"


async def test_a_build_without_the_page(make_edge: Any, build_dir: Path) -> None:
    """Without the form's template the faults cannot be shown: 503 with a sentence."""
    async with make_edge(BUILD_DIR=str(build_dir)) as edge:
        async with edge.ask("POST", PATH, data={}) as answer:
            assert answer.status == 503
            assert "page cannot be shown" in (await answer.json())["error"]
        async with edge.ask("POST", PATH, data=GOOD) as answer:
            assert answer.status == 303


@pytest.mark.parametrize("for_script", [False, True])
async def test_a_long_message_keeps_its_end(edge: Any, *, for_script: bool) -> None:
    """It comes back whole, with the offer to send two; they are stored, and counted as one."""
    headers = SCRIPT if for_script else {}
    fields = {**GOOD, "message": "A long brief, and more.\r\n" * 150}
    answer, page = await send(edge, fields, **headers)
    assert answer.status == 400
    if not for_script:
        assert fault(page, "message") == "3,599 of 2,000 characters: shorten it by 1,599."
        assert find(page, "#message").text().split() == fields["message"].split()
        assert find(page, "#message").attributes["aria-invalid"] == "true"
        assert fault(page, "rest") == "Or send up to 4,000 characters as two messages."
        assert "hidden" not in find(page, ".field:has([name=rest])").attributes
    assert await leads(edge) == []

    key = {"Idempotency-Key": "press-1"}
    for _ in range(2):
        answer, _ = await send(edge, {**fields, "rest": "second"}, **headers, **key)
        assert answer.status == (201 if for_script else 303)
    second, first = sorted(await leads(edge), key=lambda lead: lead["created_at"], reverse=True)
    assert f"{first['message']}\n{second['message']}" == fields["message"].strip().replace("\r", "")
    assert "other_part" not in first


async def test_the_two_leads_of_a_long_message_count_as_one(make_edge: Any) -> None:
    """With a limit of two an hour, another one may be sent."""
    async with make_edge(RATE_LEADS="2/hour") as edge:
        long = {**GOOD, "message": "word " * 700, "rest": "second"}
        another = {**GOOD, "message": "Another message."}
        sent = [(await send(edge, fields))[0].status for fields in (long, GOOD, another)]

        assert sent == [303, 303, 429]
        assert len(await leads(edge)) == 3


async def test_a_text_of_more_than_two_messages_comes_back(edge: Any) -> None:
    """Whole, and it says by how much it is too long."""
    fields = {**GOOD, "message": "x" * 9000, "rest": "second"}
    _, page = await send(edge, fields)

    assert fault(page, "message") == "9,000 of 4,000 characters: shorten it by 5,000."
    assert find(page, "#message").text().strip() == fields["message"]
    assert await leads(edge) == []
