"""A sixth administrative table in a copy of the product: one entry and one step, and it is whole.

The step is what `migrate --print` gives. Then each part that has to know the table is asked.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.edge.changed_product import add_step, copy_product, replace_once, said
from tests.edge.edge_process import Installation, ServedEdge
from tests.edge.engines import ENGINES, IN_LARGER_RUNS, placed

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

ROW = '''
class MemberRow(RowModel):
    """Somebody who reads by mail."""

    id: NewId
    email: Address
    created_at: Now


'''
TABLE = """
MEMBERS = Table(
    "members",
    MemberRow,
    "People who read by mail.",
    (Index("members_email", ("email",), unique=True),),
    administrative=True,
    personal=PersonalData(("email",)),
    retention=Retention("created_at", "retain_leads_days"),
    on_restore="compared",
)


def tables_by_name("""
PATH = "/api/public/v1/admin/members"
ANN, BOB, OLD = ({"email": f"{name}@example.org"} for name in ("ann", "bob", "old"))
LONG_AGO = "2001-01-01T00:00:00.000000Z"


@pytest.fixture(params=["sqlite", IN_LARGER_RUNS])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """Return an installation of a copy of the product that has a sixth table."""
    with placed(request.param, request, tmp_path) as url:
        copy, made = copy_product(tmp_path, url)
        replace_once(
            copy / "db" / "tables.py",
            ("class CredentialRow(", f"{ROW.lstrip()}class CredentialRow("),
            ("\ndef tables_by_name(", TABLE),
            ("    *OAUTH_TABLES,\n", "    MEMBERS,\n    *OAUTH_TABLES,\n"),
        )
        add_step(copy, *printed_statements(said(made, "migrate", "--print")))
        said(made, "migrate")
        yield made


def printed_statements(printed: str) -> tuple[str, str]:
    """Return the statements that were printed for the table, in both dialects."""
    sqlite, postgresql = (
        [text for text in part.split(";\n") if re.search(r"\bmembers\b", text)]
        for part in printed.split("-- PostgreSQL")
    )
    assert (len(sqlite), len(postgresql)) == (2, 2)
    ended = ["".join(f"{each.strip()};\n" for each in part) for part in (sqlite, postgresql)]
    return ended[0], ended[1]


class Admin:
    """An administrator's client of the table."""

    def __init__(self, edge: ServedEdge, key: str) -> None:
        self._edge = edge
        self._headers = {"X-API-Key": key, "Content-Type": "application/json"}

    def ask(self, method: str, query: str = "", body: object = None) -> tuple[int, Any]:
        """Return status and rows of one request."""
        sent = None if body is None else json.dumps(body).encode()
        status, _, answer = self._edge.ask(method, PATH + query, sent, self._headers)
        return status, json.loads(answer)

    def emails(self) -> set[str]:
        """Return the addresses of all rows."""
        _, rows = self.ask("GET")
        return {row["email"] for row in rows}


def issue_key(installation: Installation, *words: str) -> str:
    """Return a key that may read and change administrative tables."""
    scopes = ("--scopes", "admin:read admin:write mcp")
    issued = json.loads(
        said(installation, "keys", "issue", "--name", "t", *scopes, "--json", *words)
    )
    return str(issued["key"])


def test_a_sixth_table_is_whole(installation: Installation) -> None:
    """The administrative interface, the documents, export, erasure, retention."""
    key, token = issue_key(installation), issue_key(installation, "--type", "access_token")
    with installation.serving() as edge:
        admin = Admin(edge, key)
        status, (ann, bob) = admin.ask("POST", body=[ANN, BOB])
        assert status == 201
        change = {"match": {"id": bob["id"]}, "values": {"email": "rob@example.org"}}
        assert admin.ask("PATCH", body=change)[1] == [{**bob, "email": "rob@example.org"}]
        assert admin.ask("GET", f"?email=eq.{ANN['email']}") == (200, [ann])
        assert admin.ask("POST", body=ANN)[0] == 409
        status, gone = admin.ask("DELETE", body={"match": {"email": "rob@example.org"}})
        assert (status, len(gone), admin.emails()) == (200, 1, {"ann@example.org"})
        check_documents(edge, token)
        admin.ask("POST", body=[BOB, {**OLD, "created_at": LONG_AGO}])

        exported = json.loads(said(installation, "privacy", "export", "Ann@Example.org", "--json"))
        assert exported["members"] == [ann]
        erased = said(installation, "privacy", "erase", "ANN@example.org", "--yes")
        assert erased.startswith("members: 1 row erased\n")
        assert admin.emails() == {"bob@example.org", "old@example.org"}
        kept = said(installation.changed(RETAIN_LEADS_DAYS="30"), "privacy", "retain")
        assert "members: 1 row deleted\n" in kept
        assert admin.emails() == {"bob@example.org"}
    entries = json.loads(said(installation, "audit", "--json"))
    assert {(entry["verb"], entry["table_name"]) for entry in entries} >= {
        ("erase", "members"),
        ("forget", "members"),
    }


def check_documents(edge: ServedEdge, token: str) -> None:
    """Look for the table in the OpenAPI document and among the tools of agents."""
    document = json.loads(edge.get("/api/public/v1/openapi.json")[2])
    assert set(document["paths"][PATH]) >= {"get", "post", "patch", "delete"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    status, _, answer = edge.post("/api/public/mcp", json.dumps(message).encode(), headers)
    assert status == 200, answer
    (tool,) = [
        each for each in json.loads(answer)["result"]["tools"] if each["name"] == "query_table"
    ]
    assert "members" in tool["inputSchema"]["properties"]["table"]["enum"]


@pytest.mark.size("ci")
@pytest.mark.parametrize("installation", ENGINES[:1], indirect=True)
def test_a_sixth_table_comes_back(installation: Installation) -> None:
    """A backup holds it; a restore erases again who was erased since, and says what came since."""
    key = issue_key(installation)
    with installation.serving() as edge:
        Admin(edge, key).ask("POST", body=[ANN, BOB])
        backup = json.loads(said(installation, "backup", "--json"))
        said(installation, "privacy", "erase", "ann@example.org", "--yes")
        Admin(edge, key).ask("POST", body=OLD)
    output = said(installation, "restore", backup["file"], "--force")

    assert backup["rows"]["members"] == 2
    assert "members that came since, in the former store alone: 1\n" in output
    assert "rows of people who had been erased since, erased again: 2\n" in output
    with installation.serving() as edge:
        assert Admin(edge, key).emails() == {"bob@example.org"}
