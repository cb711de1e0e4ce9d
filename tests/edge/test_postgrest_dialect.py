"""Words of PostgREST's dialect: done as it does them, or refused by name; never passed over."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from edge_api.db.tables import LEADS

ADMIN = "/api/public/v1/admin"
SINGLE = "application/vnd.pgrst.object+json"
LEAD = {"name": "Ada", "email": "a@example.org", "budget_tier": "b", "message": "m"}


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty BUILD_DIR: rows need no journal."""
    return tmp_path_factory.mktemp("no-journal")


class Admin:
    """A client of the leads of one running edge, with a key for everything."""

    def __init__(self, edge: Any, key: str) -> None:
        self._edge, self._key = edge, key

    async def ask(self, method: str, query: str = "", **more: Any) -> tuple[int, Any, str]:
        """Return status, headers and text of an answer; the query is encoded already."""
        table = more.pop("table", "leads")
        path = query if query.startswith("/") else f"{ADMIN}/{table}{'?' if query else ''}{query}"
        async with self._edge.ask(method, path, self._key, **more) as answer:
            return answer.status, answer.headers, (await answer.read()).decode()

    async def names(self, query: str = "", **headers: str) -> list[str]:
        """Return the names that a read finds."""
        status, _, text = await self.ask("GET", query, headers=named(headers))
        assert status == 200, text
        return [row["name"] for row in json.loads(text)]

    async def error(self, method: str, query: str = "", **more: Any) -> tuple[str, str]:
        """Return message and code of a 400."""
        status, _, text = await self.ask(method, query, **more)
        assert status == 400, text
        error = json.loads(text)
        return error["error"], error["code"]


def named(headers: dict[str, str]) -> dict[str, str]:
    """Return headers by their names."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.fixture
async def admin(edge: Any) -> Admin:
    """Return a client of an edge with 120 leads, n000 to n119."""
    client = Admin(edge, await edge.key())
    rows = [{**LEAD, "name": f"n{number:03}"} for number in range(120)]
    status, _, text = await client.ask("POST", json=rows)
    assert status == 201, text
    return client


@pytest.mark.parametrize(
    ("headers", "query", "first", "last"),
    [
        ({"Range": "0-4"}, "", 0, 4),
        ({"Range": "0-4", "Range_Unit": "items"}, "", 0, 4),
        ({"Range": "items=0-4"}, "", 0, 4),
        ({"Range": "Items=0-4"}, "", 0, 4),
        ({"Range": "5-5", "Range_Unit": "Items"}, "", 5, 5),
        ({"Range": "110-129"}, "", 110, 119),
        ({"Range": "0-999"}, "", 0, 119),
        ({"Range": "3-"}, "", 3, 102),
        ({"Range": "bytes=0-4"}, "", 0, 99),
        ({"Range": "0-4", "Range_Unit": "bytes"}, "", 0, 99),
        ({"Range": "bytes=0-4"}, "&limit=7", 0, 6),
    ],
)
async def test_a_range_of_rows(
    admin: Admin, headers: dict[str, str], query: str, first: int, last: int
) -> None:
    """`Range` stands for limit and offset; one of other units is ignored, as HTTP wants."""
    path = f"order=name{query}"
    _, answer, _ = await admin.ask("GET", path, headers=named(headers))
    assert await admin.names(path, **headers) == [f"n{each:03}" for each in range(first, last + 1)]
    assert answer["Content-Range"] == f"{first}-{last}/*"


async def test_a_range_behind_the_last_row(admin: Admin) -> None:
    """It is empty, as an offset there is."""
    headers = {"Range": "500-509", "Prefer": "count=exact"}
    status, answer, text = await admin.ask("GET", headers=headers)
    assert (status, text, answer["Content-Range"]) == (200, "[]", "*/120")


@pytest.mark.parametrize(
    ("text", "query", "message"),
    [
        ("4-0", "", "Range: must be first-last, such as 0-24, of 1 to 1000 rows"),
        ("0-1000", "", "of 1 to 1000 rows"),
        ("-5", "", "Range: must be first-last"),
        ("0-4,7-9", "", "Range: must be first-last"),
        ("all", "", "Range: must be first-last"),
        ("0-4", "limit=5", "Range: leave it out, or leave limit and offset out"),
        ("0-4", "offset=0", "Range: leave it out"),
    ],
)
async def test_a_range_that_cannot_be_given(
    admin: Admin, text: str, query: str, message: str
) -> None:
    """A range of rows that is malformed or too long is never passed over."""
    found, code = await admin.error("GET", query, headers={"Range": text})
    assert message in found
    assert code == "PGRST100"


async def test_a_write_may_answer_nothing(admin: Admin) -> None:
    """`return=minimal` writes the same and sends no rows."""
    minimal = {"Prefer": "return=minimal"}
    match = {"match": {"name": "Zoe"}}
    written = [
        await admin.ask("POST", json={**LEAD, "name": "Zoe"}, headers=minimal),
        await admin.ask("PATCH", json={**match, "values": {"status": "won"}}, headers=minimal),
        await admin.ask("DELETE", json=match, headers=minimal),
    ]
    assert [status for status, _, _ in written] == [201, 200, 200]
    for _, headers, text in written:
        assert text == ""
        assert headers["Preference-Applied"] == "return=minimal"
        assert headers["Content-Length"] == "0"
        assert "Content-Type" not in headers
    assert await admin.names("name=eq.Zoe") == []


async def test_a_minimal_write_is_checked_like_any_other(admin: Admin) -> None:
    """Errors have their body, and one object is still exactly one row."""
    headers = {"Prefer": "return=minimal", "Accept": SINGLE}
    change = {"match": {"name": ["n000", "n001"]}, "values": {"notes": "x"}}
    status, _, text = await admin.ask("PATCH", json=change, headers=headers)
    assert (status, json.loads(text)["code"]) == (406, "PGRST116")
    assert await admin.names("notes=eq.x") == []
    message, _ = await admin.error("POST", json={"name": "x"}, headers=headers)
    assert message == "email: is required"


@pytest.mark.parametrize(
    ("prefer", "applied", "is_whole"),
    [
        ("return=representation", "return=representation", True),
        ("return=minimal, return=representation", "return=minimal", False),
        ("return=representation, return=minimal", "return=representation", True),
        ("handling=strict,return=minimal", "return=minimal, handling=strict", False),
        ("handling=lenient, return=headers-only", "handling=lenient", True),
        ("missing=default, max-affected=1", "missing=default", True),
        ("respond-async", None, True),
    ],
)
async def test_preferences_of_a_write(
    admin: Admin, prefer: str, applied: str | None, *, is_whole: bool
) -> None:
    """The first of a name counts, unknown ones are left out, and the answer names those applied."""
    status, headers, text = await admin.ask("POST", json=LEAD, headers={"Prefer": prefer})
    assert (status, text != "") == (201, is_whole)
    assert headers.get("Preference-Applied") == applied


@pytest.mark.parametrize(
    ("method", "prefer", "named_word"),
    [
        ("GET", "handling=strict, count=planned", "count=planned"),
        ("GET", "count=exact; x=1, handling=strict, foo=bar", "foo=bar"),
        ("GET", "handling=strict, return=minimal", "return=minimal"),
        ("POST", "handling=strict, max-affected=1", "max-affected=1"),
        ("POST", 'handling="strict", return=headers-only', "return=headers-only"),
        ("POST", "resolution=merge-duplicates", "resolution"),
        ("POST", "tx=rollback", "tx=rollback"),
        ("POST", "return=minimal, handling=strict, timezone=Asia/Tokyo", "timezone=asia/tokyo"),
    ],
)
async def test_preferences_that_are_refused(
    admin: Admin, method: str, prefer: str, named_word: str
) -> None:
    """Strict handling refuses what is not supported, by its name, and stores nothing."""
    body: dict[str, Any] = {"json": {**LEAD, "name": "Zoe"}} if method == "POST" else {}
    message, code = await admin.error(method, headers={"Prefer": prefer}, **body)
    assert message.startswith(f"Prefer: {named_word} is not supported")
    assert code == ("PGRST122" if "strict" in prefer else "PGRST100")
    assert await admin.names("name=eq.Zoe") == []


@pytest.mark.parametrize(
    ("query", "word", "advice"),
    [
        ("or=(name.eq.a,name.eq.b)", "or", "in.(a,b)"),
        ("and=(name.eq.a,email.eq.b)", "and", "a parameter of its own"),
        ("not.or=(name.eq.a)", "not.or", "in.(a,b)"),
        ("not.and=(name.eq.a)", "not.and", "a parameter of its own"),
        ("email_send_log.or=(name.eq.a)", "email_send_log.or", "in.(a,b)"),
        ("spam_reasons=cs.{link}", "cs", "JSON takes is alone"),
        ("spam_reasons=cd.{link}", "cd", "JSON takes is alone"),
        ("spam_reasons=not.ov.{link}", "ov", "JSON takes is alone"),
        ("message=fts.journal", "fts", "ilike.*word*"),
        ("message=fts(english).journal", "fts(english)", "ilike.*word*"),
        ("message=plfts.journal", "plfts", "ilike.*word*"),
        ("message=phfts.journal", "phfts", "ilike.*word*"),
        ("message=not.wfts(german).journal", "wfts(german)", "ilike.*word*"),
        ("name=match.^A", "match", "like or ilike"),
        ("name=imatch.^A", "imatch", "like or ilike"),
        ("name=isdistinct.A", "isdistinct", "neq"),
        ("spam_score=sl.(1,2)", "sl", "gte and lt"),
        ("spam_score=adj.(1,2)", "adj", "gte and lt"),
        ("name=eq(any).{a,b}", "eq(any)", "in.(a,b)"),
        ("name=like(all).{a*,b*}", "like(all)", "repeat the filter"),
        ("name=not.ilike(any).{a*,b*}", "ilike(any)", "in.(a,b)"),
        ("select=*,email_send_log(status,created_at)", "email_send_log(...)", "by itself"),
        ("select=name,mail:email_send_log!inner(*)", "mail:email_send_log!inner(...)", "by itself"),
        ("select=...email_send_log(status)", "...email_send_log(...)", "by itself"),
        ("select=count()", "count(...)", "not aggregated"),
        ("select=count", "count", "not aggregated"),
        ('select="name"', '"name"', "without quotes"),
        ("select=spam_score.sum()", "spam_score.sum(...)", "not aggregated"),
        ("email_send_log.status=eq.sent", "email_send_log.status", "not embedded"),
        ("email_send_log.limit=1", "email_send_log.limit", "not embedded"),
        ("order=email_send_log(status).desc", "email_send_log(status)", "not embedded"),
        ("select=spam_reasons->0", "spam_reasons->0", "select the column itself"),
        ("select=first:spam_reasons->>0", "spam_reasons->>0", "select the column itself"),
        ("spam_reasons->>0=eq.link", "spam_reasons->>0", "select the column itself"),
        ("order=spam_reasons->0.desc", "spam_reasons->0", "select the column itself"),
        ("columns=name", "columns", "select"),
        ("on_conflict=id", "on_conflict", "filters"),
    ],
)
async def test_words_that_are_not_done_are_named(
    admin: Admin, query: str, word: str, advice: str
) -> None:
    """Each is a 400 that names the word and says what to do, and none is called a column."""
    message, code = await admin.error("GET", quote(query, safe="=&*(){},.!"))
    assert re.search(rf"(?:^|\W){re.escape(word)}:? is not supported", message), message
    assert advice in message
    assert "no such column" not in message
    assert code == "PGRST100"


async def test_other_unknown_words_stay_as_they_were(admin: Admin) -> None:
    """For a misspelt name, the error lists the columns and operators that there are."""
    assert await admin.error("GET", "nmae=eq.x") == (
        f"nmae: no such column in leads; it has {', '.join(LEADS.readable)}",
        "42703",
    )
    message, _ = await admin.error("GET", "name=eqq.x")
    assert message == "name: must begin with an operator and a dot, as in name=is.null"


async def test_forms_that_are_not_done_are_named(admin: Admin) -> None:
    """A plan of the query, and rows without their NULLs."""
    for accept in (f"{SINGLE};nulls=stripped", "application/vnd.pgrst.plan+json"):
        for method in ("GET", "POST"):
            body: dict[str, Any] = {"json": {**LEAD, "name": "Zoe"}} if method == "POST" else {}
            message, _ = await admin.error(method, headers={"Accept": accept}, **body)
            assert message.startswith(f"Accept: {accept.rpartition(';')[2]} is not supported")
    assert await admin.names("name=eq.Zoe") == []


async def test_a_sheet_says_what_is_left(admin: Admin) -> None:
    """It keeps the limits of every read; its range has the total, and a link leads through all."""
    query, read, ranges = "order=name&limit=50&select=name,notes", [], []
    while query:
        status, headers, text = await admin.ask("GET", query, headers={"Accept": "text/csv"})
        assert status == 200
        read += [row["name"] for row in csv.DictReader(io.StringIO(text))]
        ranges.append(headers["Content-Range"])
        link = headers.get("Link", "")
        assert link == "" or re.fullmatch(r'<[^>]+>; rel="next"', link)
        query = link[1:].partition(">")[0]
    assert read == [f"n{number:03}" for number in range(120)]
    assert ranges == ["0-49/120", "50-99/120", "100-119/120"]

    _, plain, _ = await admin.ask("GET", headers={"Accept": "text/csv"})
    assert plain["Content-Range"] == "0-99/120"
    assert plain["Link"] == f'<{ADMIN}/leads?offset=100>; rel="next"'
    _, head, _ = await admin.ask("HEAD", headers={"Accept": "text/csv"})
    assert head["Link"] == plain["Link"]


async def test_a_counted_read_has_the_link_too(admin: Admin) -> None:
    """Filters and ranges go on in it; without a total nobody knows whether more follow."""
    headers = {"Prefer": "count=exact", "Range": "0-1"}
    query = "name=in.(%22n000%22,n001,n003)&order=name"
    _, answer, _ = await admin.ask("GET", query, headers=headers)
    path = answer["Link"][1:].partition(">")[0]
    _, following, text = await admin.ask("GET", path, headers={"Prefer": "count=exact"})
    assert [row["name"] for row in json.loads(text)] == ["n003"]
    assert following["Content-Range"] == "2-2/3"
    assert "Link" not in following
    _, uncounted, _ = await admin.ask("GET", "limit=2")
    assert "Link" not in uncounted


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-1",
        "0.1",
        "1.5e-7",
        "1e2",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775807",
        "1e19",
        "3.141592653589793",
        "100e-2",
        "5e-324",
    ],
)
async def test_a_number_comes_back_as_it_was_sent(admin: Admin, number: str) -> None:
    """In a column of JSON, by an insert and by an update."""
    body = json.dumps({**LEAD, "name": "Zoe", "spam_reasons": [["@"]]}).replace('"@"', number)
    sent: dict[str, Any] = {"data": body, "headers": {"Content-Type": "application/json"}}
    status, _, text = await admin.ask("POST", **sent)
    assert status == 201, text
    change = json.dumps({"match": {"name": "n000"}, "values": {"spam_reasons": {"a": "@"}}})
    sent["data"] = change.replace('"@"', number)
    status, _, text = await admin.ask("PATCH", **sent)
    assert status == 200, text
    _, _, text = await admin.ask("GET", "spam_reasons=not.is.null&order=name")
    rows = [row["spam_reasons"] for row in json.loads(text)]
    assert rows == [[[json.loads(number)]], {"a": json.loads(number)}]
    if "e" not in number:  # 1e2 is 100 in PostgreSQL
        assert type(rows[0][0][0]) is type(rows[1]["a"]) is type(json.loads(number))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("123456789012345678901234567890", "spam_reasons: numbers must be from -92233720368547"),
        ("18446744073709551616", "spam_reasons: numbers must be from"),
        ("-9223372036854775808", "spam_reasons: numbers must be from"),
        ("-9223372036854775809", "spam_reasons: numbers must be from"),
        ("1e300", "spam_reasons: numbers must be from"),
        ("0.12345678901234567890", "body: 0.12345678901234567890 would become another"),
        ("9007199254740993.0", "body: 9007199254740993.0 would become another"),
        ("1e-400", "body: 1e-400 would become another"),
        ("1e-99999999999999999999", "body: 1e-99999999999999999999 would become another"),
    ],
)
async def test_a_number_that_would_change_is_refused(admin: Admin, number: str, words: str) -> None:
    """The error asks for text, and nothing is stored."""
    for method, body in (
        ("POST", {**LEAD, "name": "Zoe", "spam_reasons": {"a": ["@"]}}),
        ("PATCH", {"match": {"name": "n000"}, "values": {"spam_reasons": {"a": ["@"]}}}),
    ):
        data = json.dumps(body).replace('"@"', number)
        headers = {"Content-Type": "application/json"}
        message, code = await admin.error(method, data=data, headers=headers)
        assert message.startswith(words)
        assert message.endswith("as a string")
        assert code == "22P02"
    assert await admin.names("spam_reasons=not.is.null") == []


async def test_digits_in_texts_are_texts(admin: Admin) -> None:
    """Quotes and backslashes do not hide where a text ends."""
    text = 'a "0.12345678901234567890" \\" 1e-400 \\'
    row = {**LEAD, "name": "Zoe", "message": text, "spam_reasons": {text: text}}
    status, _, answer = await admin.ask("POST", json=row)
    assert status == 201, answer
    (stored,) = json.loads(answer)
    assert (stored["message"], stored["spam_reasons"]) == (text, {text: text})


async def test_there_is_one_schema(admin: Admin) -> None:
    """PostgREST's headers that choose a schema take `public` alone."""
    for method, name in (("GET", "Accept-Profile"), ("POST", "Content-Profile")):
        body: dict[str, Any] = {"json": {**LEAD, "name": "Zoe"}} if method == "POST" else {}
        message, _ = await admin.error(method, headers={name: "secret"}, **body)
        assert message == f"{name}: there is one schema, public; leave it out"
        status, _, _ = await admin.ask(method, headers={name: "public"}, **body)
        assert status < 300
