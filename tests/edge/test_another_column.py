"""Another column of a lead in a copy of the product: a declaration and a step, and it is whole.

People send it by the form, the API and the tool of agents; the owner sees it, and all that reads
rows knows it. The bound is in the declaration alone.
"""

import json
import re
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from edge_api.desk.sessions import HIDDEN_FIELD
from tests.edge.changed_product import add_step, copy_product, replace_once, said
from tests.edge.edge_process import ServedEdge
from tests.edge.engines import IN_LARGER_RUNS, placed
from tests.patience import patience

pytestmark = [pytest.mark.each_engine, pytest.mark.size("test")]

COLUMN = """\
    company_size: Annotated[Text, Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="How many people work there."
    )


class SentAccessRequest("""
SQLITE = "ALTER TABLE leads ADD COLUMN company_size TEXT CHECK (length(company_size) <= 20);\n"
LEAD = {"name": "Ann", "email": "ann@example.org", "budget_tier": "5k", "message": "Hello."}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LEADS = "/api/public/v1/leads"


def read_desk(edge: ServedEdge, key: str, path: str) -> str:
    """Sign in at the desk with a key, and return one of its pages."""
    browser = build_opener(HTTPCookieProcessor())
    browser.addheaders = [("Sec-Fetch-Site", "same-origin")]

    def read(at: str, **fields: str) -> str:
        sent = urlencode(fields).encode() if fields else None
        url = f"http://127.0.0.1:{edge.port}{at}"
        with browser.open(url, sent, timeout=patience()) as answer:
            return str(answer.read().decode())

    seal = re.search(rf'name="{HIDDEN_FIELD}" value="([^"]+)"', read("/desk/sign-in/"))
    assert seal is not None
    read("/desk/sign-in/", key=key, **{HIDDEN_FIELD: seal[1]})
    return read(path)


@pytest.mark.parametrize("engine", ["sqlite", IN_LARGER_RUNS])
def test_another_column_is_whole(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It is taken and bound wherever a lead is sent, and shown wherever one is read."""
    with placed(engine, request, tmp_path) as url:
        copy, installation = copy_product(tmp_path, url)
        replace_once(copy / "db" / "visitor_columns.py", ("\n\nclass SentAccessRequest(", COLUMN))
        add_step(copy, SQLITE, SQLITE.replace("TEXT", 'text COLLATE "C"'))
        said(installation, "migrate")
        scopes = ("--scopes", "admin:read leads:write mcp")
        keys = (("--type", "api_key"), ("--type", "access_token"))
        key, token = (
            json.loads(said(installation, "keys", "issue", "--name", "t", "--json", *scopes, *each))
            for each in keys
        )
        headers = {"X-API-Key": key["key"], "Content-Type": "application/json"}
        agent = {"Authorization": f"Bearer {token['key']}", "Content-Type": "application/json"}
        with installation.serving() as edge:
            for number, text in enumerate(("  2 \u2013 9 ", None)):
                lead = {**LEAD, "message": f"By the API, {number}.", "company_size": text}
                assert edge.post(LEADS, json.dumps(lead).encode(), headers)[0] == 201
            refused = {**LEAD, "company_size": "x" * 21}
            status, _, answer = edge.post(LEADS, json.dumps(refused).encode(), headers)
            assert (status, json.loads(answer)["error"]) == (
                400,
                "company_size: 21 of 20 characters: shorten it by 1",
            )
            for text in ("", "By form"):
                form = urlencode({**LEAD, "message": f"A form: {text}", "company_size": text})
                assert edge.post("/contact/", form.encode(), FORM)[0] == 303
            call = {"name": "create_lead", "arguments": {**LEAD, "company_size": "By tool"}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            version = {"Accept": "application/json", "MCP-Protocol-Version": "2025-06-18"}
            called = edge.post("/api/public/mcp", json.dumps(body).encode(), {**agent, **version})
            assert called[0] == 200, called[2]
            query = "/api/public/v1/admin/leads?select=company_size&order=created_at"
            stored = json.loads(edge.get(query, headers)[2])
            table = edge.get(f"{query}&limit=1", {**headers, "Accept": "text/csv"})[2]
            document = json.loads(edge.get("/api/public/v1/openapi.json")[2])
            newest = json.loads(edge.get("/api/public/v1/admin/leads?limit=1", headers)[2])
            page = read_desk(edge, key["key"], f"/desk/leads/{newest[0]['id']}/")
        shown = said(installation, "leads", "list", "--json")

    assert f"<dt>Company size</dt><dd><bdi>{newest[0]['company_size']}</bdi></dd>" in page
    sizes = ["2 \u2013 9", None, None, "By form", "By tool"]
    assert [row["company_size"] for row in stored] == sizes
    assert table.decode() == "company_size\r\n2 \u2013 9\r\n"
    assert [row["company_size"] for row in reversed(json.loads(shown))] == sizes
    schema = document["components"]["schemas"]["LeadInput"]["properties"]["company_size"]
    assert schema["anyOf"][0]["maxLength"] == 20
    assert schema["description"] == "How many people work there."
