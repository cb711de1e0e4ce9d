"""The administrative interface over HTTP: who may, in which order that is checked, what is sent."""

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from edge_api.db.tables import ADMINISTRATIVE, LEADS

ADMIN = "/api/public/v1/admin"
LEAD = {"name": "Ada", "email": "a@example.org", "budget_tier": "b", "message": "m"}
SENT = {"template_name": "t", "recipient_email": "a@b.c", "status": "sent", "message_id": "m"}
TABLES = list(ADMINISTRATIVE)
BODIES = {
    "POST": [],
    "PATCH": {"match": {"created_at": []}, "values": {"created_at": "2026-01-01"}},
    "DELETE": {"match": {"created_at": []}},
}
STATE_BODIES = {
    "POST": [],
    "PATCH": {"match": {"id": []}, "values": {"batch_size": 1}},
    "DELETE": {"match": {"id": []}},
}
MEMBERS = ["error", "message", "code", "details", "hint"]


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty BUILD_DIR: rows need no journal."""
    return tmp_path_factory.mktemp("no-journal")


async def answer_of(edge: Any, method: str, path: str, key: str | None, **more: Any) -> Any:
    """Return status, headers and body of an answer; `path` is below the interface."""
    async with edge.ask(method, f"{ADMIN}/{path}", key, **more) as answer:
        return answer.status, answer.headers, await answer.read()


def harmless(table: str, method: str) -> dict[str, Any]:
    """Return the options of a request that changes nothing."""
    if method == "GET":
        return {}
    return {"json": (STATE_BODIES if table == "email_send_state" else BODIES)[method]}


def streamed(body: Any) -> dict[str, Any]:
    """Return the options of a request with a large JSON body."""
    data = io.BytesIO(json.dumps(body).encode())
    return {"data": data, "headers": {"Content-Type": "application/json"}}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_each_verb_of_each_table(edge: Any, table: str, method: str) -> None:
    """Every table answers all four verbs with an array that nobody may keep."""
    key = await edge.key("admin:read", "admin:write")

    status, headers, body = await answer_of(edge, method, table, key, **harmless(table, method))

    assert status == (201 if method == "POST" else 200)
    assert isinstance(json.loads(body), list)
    assert (headers["Content-Type"], headers["Cache-Control"]) == ("application/json", "no-store")
    assert ("Content-Range" in headers) == (method == "GET")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_each_verb_needs_its_scope(edge: Any, table: str, method: str) -> None:
    """Reading needs admin:read, writing admin:write; the other one does not help."""
    other = "admin:write" if method == "GET" else "admin:read"
    needed = "admin:read" if method == "GET" else "admin:write"

    status, headers, body = await answer_of(
        edge, method, table, await edge.key(other), **harmless(table, method)
    )

    assert (status, list(json.loads(body))) == (403, MEMBERS)
    assert 'error="insufficient_scope"' in headers["WWW-Authenticate"]
    assert needed in headers["WWW-Authenticate"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_a_key_may_be_held_to_some_tables(edge: Any, table: str, method: str) -> None:
    """A key with a list of tables is refused on all others, whatever its scopes."""
    elsewhere = next(name for name in TABLES if name != table)
    options = harmless(table, method)
    scopes = ("admin:read", "admin:write")

    refused = await answer_of(
        edge, method, table, await edge.key(*scopes, tables=(elsewhere,)), **options
    )
    allowed = await answer_of(
        edge, method, table, await edge.key(*scopes, tables=(table,)), **options
    )

    assert (refused[0], json.loads(refused[2])["error"]) == (403, "Table not allowed")
    assert allowed[0] in (200, 201)


@pytest.mark.parametrize(
    ("credential", "path", "status", "message"),
    [
        (None, "credentials?x", 401, ""),
        ("wrong", "credentials?x", 401, ""),
        ("no scope", "credentials?x", 403, "Table not allowed"),
        ("other table", "leads?x", 403, "Table not allowed"),
        ("no scope", "leads?x", 403, "scope"),
        ("all", "leads?x", 400, "x: no such column"),
        ("all", "leads", 200, ""),
    ],
)
async def test_the_order_of_checks(
    edge: Any, credential: str | None, path: str, status: int, message: str
) -> None:
    """Credential, table, scope, parameters: the first that fails is what the client hears of."""
    keys = {
        None: None,
        "wrong": "not-a-key",
        "no scope": await edge.key("posts:read"),
        "other table": await edge.key("posts:read", tables=("suppressed_emails",)),
        "all": await edge.key(),
    }

    found, _, body = await answer_of(edge, "GET", path, keys[credential])

    assert found == status
    assert message in (json.loads(body)["error"] if status >= 400 else "")


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_a_missing_credential_gets_the_plain_error(edge: Any, method: str) -> None:
    """The 401 of the interface is the plain error, and says how to authenticate."""
    status, headers, body = await answer_of(
        edge, method, "leads", None, **harmless("leads", method)
    )

    assert (status, list(json.loads(body))) == (401, ["error"])
    assert headers["WWW-Authenticate"].startswith("Bearer")


async def test_an_error_carries_the_members_of_the_dialect(edge: Any) -> None:
    """An error has its sentence in two members, and a code that the dialect's clients know."""
    _, _, body = await answer_of(edge, "GET", "leads?spam_score=eq.ten", await edge.key())

    assert json.loads(body) == {
        "error": "spam_score: is not an integer",
        "message": "spam_score: is not an integer",
        "code": "22P02",
        "details": None,
        "hint": None,
    }


@pytest.mark.parametrize("table", TABLES)
async def test_a_fault_of_each_body_is_named(edge: Any, table: str) -> None:
    """An unknown column in a body is refused by each write of each table."""
    key = await edge.key()
    bodies = {
        "POST": {"nope": 1},
        "PATCH": {"match": {"nope": 1}, "values": {"nope": 1}},
        "DELETE": {"match": {"nope": 1}},
    }
    for method, body in bodies.items():
        status, _, raw = await answer_of(edge, method, table, key, json=body)
        assert (status, json.loads(raw)["code"]) == (400, "42703")


@pytest.mark.parametrize(
    ("method", "body", "words"),
    [
        ("POST", "7", "must be an object or an array of objects"),
        ("POST", "null", "must be an object or an array of objects"),
        ("POST", "[7]", "0: must be an object"),
        ("POST", "", "The body is empty"),
        ("POST", "{", "not valid JSON"),
        ("PATCH", "[]", "must be an object"),
        ("PATCH", "{}", "match: is required"),
        ("PATCH", '{"match": {"name": "a"}}', "values: is required"),
        ("PATCH", '{"match": 7, "values": {}}', "match: must be an object"),
        ("PATCH", '{"match": {"name": "a"}, "values": {}}', "values: must name at least one"),
        ("PATCH", '{"match": {}, "values": {"name": "a"}}', "match: must name at least one"),
        ("DELETE", '{"match": {"name": "a"}, "values": {}}', "values: is not a known member"),
        ("DELETE", '{"match": {}}', "match: must name at least one"),
        ("DELETE", '"x"', "must be an object"),
    ],
)
async def test_a_body_of_another_shape_is_refused(
    edge: Any, method: str, body: str, words: str
) -> None:
    """The error says that it is no row, no match or no JSON, and nothing is changed."""
    key = await edge.key()
    headers = {"Content-Type": "application/json"}

    status, _, raw = await answer_of(edge, method, "leads", key, data=body, headers=headers)

    assert (status, list(json.loads(raw))) == (400, MEMBERS)
    assert words in json.loads(raw)["error"]


async def test_a_missing_content_type_is_json(edge: Any) -> None:
    """A body without a type is JSON; one of another type is refused."""
    key = await edge.key()
    body = json.dumps(LEAD).encode()

    plain = await answer_of(
        edge, "POST", "leads", key, data=body, headers={"Content-Type": "text/plain"}
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rpartition(":")[2]))
    writer.write(
        f"POST {ADMIN}/leads HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    bare = await reader.read()
    writer.close()
    await writer.wait_closed()

    assert plain[0] == 415
    assert bare.startswith(b"HTTP/1.1 201")


async def test_a_write_may_be_large_but_not_without_bound(edge: Any) -> None:
    """A body of close to a mebibyte is taken, one beyond it is refused."""
    key = await edge.key()
    rows = [{**LEAD, "message": "x" * 1000} for _ in range(900)]

    taken = await answer_of(edge, "POST", "leads", key, **streamed(rows))
    refused = await answer_of(
        edge, "POST", "leads", key, **streamed({**LEAD, "notes": "x" * 1024 * 1024})
    )

    assert (taken[0], len(json.loads(taken[2]))) == (201, 900)
    assert (refused[0], list(json.loads(refused[2]))) == (413, MEMBERS)


async def test_a_row_goes_all_the_way(edge: Any) -> None:
    """A row is stored, read, changed and deleted, and each answer is the row as it is then."""
    key = await edge.key()
    _, _, stored = await answer_of(
        edge, "POST", "leads", key, json={**LEAD, "id": "0" * 8 + "-0000-4000-8000-000000000001"}
    )
    (row,) = json.loads(stored)
    where = f"leads?id=eq.{row['id']}"

    assert list(row) == list(LEADS.readable)
    assert json.loads((await answer_of(edge, "GET", where, key))[2]) == [row]
    change = {"match": {"id": row["id"]}, "values": {"status": "won"}}
    (changed,) = json.loads((await answer_of(edge, "PATCH", "leads", key, json=change))[2])
    assert changed == {**row, "status": "won", "updated_at": changed["updated_at"]}
    gone = {"match": {"id": row["id"]}}
    assert json.loads((await answer_of(edge, "DELETE", "leads", key, json=gone))[2]) == [changed]
    assert json.loads((await answer_of(edge, "DELETE", "leads", key, json=gone))[2]) == []


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("leads", {**LEAD, "id": "00000000-0000-4000-8000-000000000001"}),
        ("email_send_log", SENT),
        ("email_send_state", {}),
        ("email_unsubscribe_tokens", {"token": "t" * 32, "email": "A@b.c"}),
        ("suppressed_emails", {"email": "A@b.c", "reason": "bounce"}),
    ],
)
async def test_a_duplicate_is_a_conflict(edge: Any, table: str, row: dict[str, Any]) -> None:
    """A row that exists already is answered with 409 and what it collides in."""
    key = await edge.key()
    await answer_of(edge, "POST", table, key, json=row)

    status, _, body = await answer_of(edge, "POST", table, key, json=row)

    assert (status, json.loads(body)["code"], list(json.loads(body))) == (409, "23505", MEMBERS)
    assert json.loads(body)["details"].startswith("Key (")


@pytest.mark.parametrize(
    ("table", "rows", "match", "values"),
    [
        (
            "email_send_log",
            [SENT, {**SENT, "status": "failed"}],
            {"status": "failed"},
            {"status": "sent"},
        ),
        (
            "email_unsubscribe_tokens",
            [{"token": n * 32, "email": f"{n}@b.c"} for n in "xy"],
            {"email": "x@b.c"},
            {"email": "Y@b.c"},
        ),
        (
            "suppressed_emails",
            [{"email": f"{n}@b.c", "reason": "bounce"} for n in "xy"],
            {"email": "x@b.c"},
            {"email": "Y@b.c"},
        ),
    ],
)
async def test_a_change_into_a_duplicate_is_a_conflict(
    edge: Any, table: str, rows: list[Any], match: dict[str, Any], values: dict[str, Any]
) -> None:
    """A change that would make two rows alike is answered with 409."""
    key = await edge.key()
    await answer_of(edge, "POST", table, key, json=rows)

    status, _, body = await answer_of(
        edge, "PATCH", table, key, json={"match": match, "values": values}
    )

    assert (status, json.loads(body)["code"]) == (409, "23505")


async def test_rows_as_a_sheet(edge: Any) -> None:
    """`Accept: text/csv` gives the same rows as a table that a spreadsheet runs nothing of."""
    key = await edge.key()
    rows = [{**LEAD, "name": "=1+1", "notes": 'a "b",\nc'}, {**LEAD, "name": "B", "notes": None}]
    await answer_of(edge, "POST", "leads", key, json=rows)
    headers = {"Accept": "text/csv", "Prefer": "count=exact"}

    status, sent, body = await answer_of(
        edge, "GET", "leads?select=n:name,notes&order=name", key, headers=headers
    )

    assert (status, sent["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert (sent["Content-Range"], sent["Preference-Applied"]) == ("0-1/2", "count=exact")
    lines = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert lines == [["n", "notes"], ["'=1+1", 'a "b",\nc'], ["B", ""]]


async def test_one_row_as_an_object(edge: Any) -> None:
    """The object form is exactly one row, and 406 for none or several."""
    key = await edge.key()
    form = "application/vnd.pgrst.object+json"
    await answer_of(edge, "POST", "leads", key, json=[LEAD, {**LEAD, "name": "B"}])

    one = await answer_of(edge, "GET", "leads?name=eq.B&select=name", key, headers={"Accept": form})
    none = await answer_of(edge, "GET", "leads?name=eq.x", key, headers={"Accept": form})
    two = await answer_of(edge, "GET", "leads", key, headers={"Accept": form})

    assert (one[0], one[1]["Content-Type"], json.loads(one[2])) == (200, form, {"name": "B"})
    assert (none[0], two[0]) == (406, 406)
    assert [json.loads(item[2])["code"] for item in (none, two)] == ["PGRST116"] * 2
    assert json.loads(two[2])["details"] == "The result contains 2 rows"


@pytest.mark.parametrize("table", TABLES)
async def test_each_table_can_lack_the_one_row(edge: Any, table: str) -> None:
    """The object form of no row is 406 on each table."""
    headers = {"Accept": "application/vnd.pgrst.object+json"}

    status, _, body = await answer_of(
        edge, "GET", f"{table}?id=is.null", await edge.key(), headers=headers
    )

    assert (status, json.loads(body)["code"]) == (406, "PGRST116")


async def test_head_counts(edge: Any) -> None:
    """HEAD gives the headers of GET, the count among them, and no body."""
    key = await edge.key()
    await answer_of(edge, "POST", "leads", key, json=[LEAD, LEAD, LEAD])

    status, headers, body = await answer_of(
        edge, "HEAD", "leads?limit=2", key, headers={"Prefer": "count=exact"}
    )

    assert (status, body) == (200, b"")
    assert (headers["Content-Range"], headers["Preference-Applied"]) == ("0-1/3", "count=exact")


async def test_the_query_is_decoded_as_forms_are(edge: Any) -> None:
    """A plus sign is a space, %2B a plus sign, and a semicolon separates nothing."""
    key = await edge.key()
    rows = [{**LEAD, "name": name} for name in ("a b", "a+b", "a;b=c")]
    await answer_of(edge, "POST", "leads", key, json=rows)

    for query, name in (("a+b", "a b"), ("a%2Bb", "a+b"), ("a;b=c", "a;b=c")):
        _, _, body = await answer_of(edge, "GET", f"leads?name=eq.{query}&select=name", key)
        assert json.loads(body) == [{"name": name}], query
