"""The query and headers of an administrative write: nothing unknown is ignored."""

import json
from pathlib import Path
from typing import Any

import pytest

from edge_api.admin.operations import OPERATIONS, TAG_DESCRIPTION
from edge_api.auth.actor import recent_entries
from edge_api.db.tables import SUPPRESSED_EMAILS
from edge_api.operation.openapi import openapi_document

pytestmark = pytest.mark.each_engine

PATH = "/api/public/v1/admin/suppressed_emails"
OBJECT = "application/vnd.pgrst.object+json"
ROWS = [{"email": f"{letter}@b.c", "reason": "bounce"} for letter in "abcde"]
ALL = {"reason": "bounce"}
TO = {"reason": "complaint"}
BODIES: dict[str, Any] = {
    "POST": [{"email": "new@b.c", "reason": "bounce"}],
    "PATCH": {"match": ALL, "values": TO},
    "DELETE": {"match": ALL},
}
WRITES = list(BODIES)


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty BUILD_DIR: rows need no journal."""
    return tmp_path_factory.mktemp("no-journal")


@pytest.fixture
async def table(edge: Any) -> "TableClient":
    """Return a client of the table, with five rows in it."""
    table = TableClient(edge, await edge.key())
    await table.ask("POST", json=ROWS)
    return table


class TableClient:
    """Writes to the table, and checks what is in it."""

    def __init__(self, edge: Any, key: str) -> None:
        self._edge = edge
        self._key = key

    async def ask(self, method: str, query: str = "", **more: Any) -> Any:
        """Return status, media type and decoded body."""
        async with self._edge.ask(method, f"{PATH}{query}", self._key, **more) as answer:
            raw = await answer.read()
            if answer.content_type == "text/csv":
                return answer.status, answer.content_type, raw.decode()
            return answer.status, answer.content_type, json.loads(raw)

    async def refusal(self, method: str, query: str = "", **more: Any) -> str:
        """Return the sentence of a 400, having checked that no row was changed and no audit made.

        The body is sound, so that only the query or a header can be at fault.
        """
        body = await self.refused(400, method, query, **{"json": BODIES[method], **more})
        return str(body["error"])

    async def refused(self, status: int, method: str, query: str = "", **more: Any) -> Any:
        """Return the body of a refusal, having checked that it changed nothing."""
        got, _, body = await self.ask(method, query, **more)
        assert (got, list(body)) == (status, ["error", "message", "code", "details", "hint"])
        _, _, rows = await self.ask("GET", "?select=email,reason&order=email")
        assert rows == ROWS
        audited = await recent_entries(self._edge.service.store, 10)
        assert [entry["verb"] for entry in audited] == ["insert", "issue"]
        return body


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    "query", ["email=eq.a@b.c", "nope=eq.1", "limit=1", "order=email", "columns=email", "id", "=1"]
)
async def test_a_filter_in_the_query_never_widens_a_change(
    table: TableClient, method: str, query: str
) -> None:
    """The parameter is refused by its name, and the sentence says where rows are chosen."""
    message = await table.refusal(method, f"?{query}")

    assert message.startswith(f"{query.partition('=')[0]}: ")
    assert "rows are chosen by `match` in the body" in message


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_filter_is_refused_before_the_body_is_looked_at(
    table: TableClient, method: str
) -> None:
    """Changes of PostgREST's clients have no `match`, and their deletions no body."""
    body = {} if method == "DELETE" else {"json": TO}

    problem = await table.refused(400, method, "?email=eq.a@b.c&select=*", **body)

    assert problem["error"].startswith("email: ")


@pytest.mark.parametrize("query", ["on_conflict=email", "email=eq.a@b.c", "limit=1", "order=email"])
async def test_an_insert_takes_no_other_parameter(table: TableClient, query: str) -> None:
    """The parameter is refused by its name, and the sentence says how a row is changed."""
    message = await table.refusal("POST", f"?{query}")

    assert message.startswith(f"{query.partition('=')[0]}: ")
    assert "PATCH" in message


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "prefer",
    ["resolution=merge-duplicates", 'return=minimal, Resolution = "ignore-duplicates"; x=1'],
)
async def test_an_upsert_is_refused(table: TableClient, method: str, prefer: str) -> None:
    """It would otherwise become an insert, or a misleading error."""
    message = await table.refusal(method, headers={"Prefer": prefer})

    assert message.startswith("Prefer: resolution ")


async def test_other_preferences_are_no_reason_to_refuse(table: TableClient) -> None:
    """An unknown preference is ignored (RFC 7240, section 2)."""
    prefer = {"Prefer": "return=representation, missing=default, resolutions=many"}

    status, _, rows = await table.ask("PATCH", json=BODIES["PATCH"], headers=prefer)

    assert (status, len(rows)) == (200, 5)


@pytest.mark.parametrize("method", WRITES)
async def test_select_chooses_the_columns_that_come_back(table: TableClient, method: str) -> None:
    """In all its forms, for each write."""
    query = "?select=why:reason,email,created_at::text"

    _, _, rows = await table.ask(method, query, json=BODIES[method])

    assert {tuple(row) for row in rows} == {("why", "email", "created_at")}
    assert {row["why"] for row in rows} == {"complaint" if method == "PATCH" else "bounce"}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "query", ["select=nope", "select=email::int", "select=count()", "select=email&select=id"]
)
async def test_a_faulty_select_changes_nothing(table: TableClient, method: str, query: str) -> None:
    """It is refused before anything is written."""
    await table.refusal(method, f"?{query}")


@pytest.mark.parametrize("method", WRITES)
async def test_one_row_is_answered_as_an_object(table: TableClient, method: str) -> None:
    """The object form gives the row itself, with the columns that were selected."""
    body = BODIES[method] if method == "POST" else {**BODIES[method], "match": {"email": "a@b.c"}}

    status, form, row = await table.ask(
        method, "?select=email", json=body, headers={"Accept": OBJECT}
    )

    assert (status, form) == (201 if method == "POST" else 200, OBJECT)
    assert row == {"email": "new@b.c" if method == "POST" else "a@b.c"}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("count", [0, 5])
async def test_one_object_of_none_or_several_rows_changes_nothing(
    table: TableClient, method: str, count: int
) -> None:
    """It is 406, found before anything is committed: no row and no line of the audit log is new."""
    given = [{"email": f"{number}@b.c", "reason": "bounce"} for number in range(count)]
    match = ALL if count else {"email": "nobody@b.c"}
    body = given if method == "POST" else {**BODIES[method], "match": match}

    problem = await table.refused(406, method, json=body, headers={"Accept": OBJECT})

    assert (problem["code"], problem["details"]) == (
        "PGRST116",
        f"The result contains {count} rows",
    )


@pytest.mark.parametrize("method", WRITES)
async def test_written_rows_as_a_sheet(table: TableClient, method: str) -> None:
    """`Accept: text/csv` gives what came of a write as a table."""
    query, headers = "?select=email,why:reason", {"Accept": "text/csv"}

    _, form, sheet = await table.ask(method, query, json=BODIES[method], headers=headers)

    assert (form, sheet.splitlines()[0]) == ("text/csv", "email,why")
    assert len(sheet.splitlines()) == (2 if method == "POST" else 6)


@pytest.mark.parametrize(
    ("columns", "body"),
    [
        ('"email","reason"', BODIES["POST"]),
        ("reason, email", BODIES["POST"]),
        (
            '"email","reason","metadata"',
            [*BODIES["POST"], {**ROWS[0], "email": "z@b.c", "metadata": 1}],
        ),
        ("", []),
    ],
)
async def test_columns_that_agree_with_the_body_are_accepted(
    table: TableClient, columns: str, body: Any
) -> None:
    """They name every member of the rows, as postgrest-js writes them."""
    status, _, rows = await table.ask("POST", "", params={"columns": columns}, json=body)

    assert (status, len(rows)) == (201, len(body))


@pytest.mark.parametrize(
    "columns",
    ["email", '"email","reason","metadata"', "", "email,reason,nope", '"email,reason', "*"],
)
async def test_columns_that_differ_from_the_body_are_refused(
    table: TableClient, columns: str
) -> None:
    """Omitted columns would be stored, or added ones would be missing."""
    message = await table.refusal("POST", params={"columns": columns})

    assert message.startswith("columns: ")
    assert "email, reason" in message


async def test_columns_are_given_once(table: TableClient) -> None:
    """Two lists would be ambiguous."""
    query = "?columns=email,reason&columns=email,reason"

    assert (await table.refusal("POST", query)).startswith("columns: ")


def test_a_write_is_described_by_one_type_and_words() -> None:
    """A client made from the document gets whole rows; `select` and the other forms have words."""
    document = openapi_document(OPERATIONS, "http://journal.test", "1.0.0", {})
    for table in (SUPPRESSED_EMAILS.name, "leads"):
        entry = document["paths"][f"/api/public/v1/admin/{table}"]
        for method, status in (("post", "201"), ("patch", "200"), ("delete", "200")):
            assert "parameters" not in entry[method]
            answers = entry[method]["responses"]
            assert set(answers[status]["content"]) == {"application/json"}
            assert "406" in answers
        assert "`columns`" in entry["post"]["description"]
        assert "match" in entry["patch"]["description"]
    for word in ("`select`", OBJECT, "text/csv", "return=minimal", "Range: 0-24", "strict"):
        assert word in TAG_DESCRIPTION
