"""Text that people send is in no line of the log, whatever the outcome."""

import json
from collections.abc import Mapping
from pathlib import Path
from signal import SIGTERM
from urllib.parse import urlencode

import pytest

from edge_api.operation.input import HONEYPOT
from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.patience import patience
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

LEADS = "/api/public/v1/leads"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
MARKS = ("Quixotic", "zephyrine", "mellifluous", "sesquipedal")
GOOD = {
    "name": f"{MARKS[0]} Name",
    "email": f"{MARKS[1]}@example.org",
    "budget_tier": MARKS[3],
    "message": f"A {MARKS[2]} message",
}
FAULTY = {**GOOD, "email": f"{MARKS[1]} at nowhere", "name": MARKS[0] * 40}
SPAM = {**GOOD, HONEYPOT: MARKS[2]}
WRONG_KINDS = {**GOOD, "name": [MARKS[0]], "message": {MARKS[2]: MARKS[1]}}
BROKEN = json.dumps(GOOD)[:-1]


@pytest.fixture(params=["text", *in_ci("json")])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    """Return an installation, for either form of its log."""
    port = free_port()
    run_build(CONTENT, tmp_path / "build", site_url=f"http://127.0.0.1:{port}")
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{tmp_path}/edge.db",
        "BUILD_DIR": str(tmp_path / "build"),
        "RATE_LEADS": "6/hour",
        "LOG_FORMAT": request.param,
    }
    return Installation(tmp_path, settings)


def send_json(edge: ServedEdge) -> list[int]:
    """Send leads to the API; return what it says."""
    bodies = [json.dumps(lead) for lead in (GOOD, FAULTY, SPAM, WRONG_KINDS)]
    keyed = {**JSON, "Idempotency-Key": MARKS[3]}
    plain = [edge.post(LEADS, body.encode(), JSON)[0] for body in [*bodies, BROKEN]]
    other = json.dumps({**GOOD, "name": MARKS[0]})
    return [*plain, *(edge.post(LEADS, body.encode(), keyed)[0] for body in (bodies[0], other))]


def send_form(edge: ServedEdge) -> list[int]:
    """Send the form as a browser does, and as its script does."""
    # The same form is taken once, so the two differ.
    script = {**FORM, "Accept": "application/json"}
    doors: tuple[tuple[dict[str, str], dict[str, str]], ...] = (
        (FORM, {}),
        (script, {"consent": "on"}),
    )
    return [
        edge.post("/contact/", urlencode({**lead, **own}).encode(), headers)[0]
        for lead in (GOOD, FAULTY, SPAM)
        for headers, own in doors
    ]


def call_tool(edge: ServedEdge, token: str, lead: Mapping[str, object]) -> bytes:
    """Let an agent create a lead; return its answer."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "create_lead", "arguments": dict(lead)}
    headers = {
        **JSON,
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    body = json.dumps({**message, "params": params}).encode()
    return edge.post("/api/public/mcp", body, headers)[2]


def token_of(installation: Installation) -> str:
    """Return a token for agents."""
    words = ("--name", "agent", "--type", "access_token", "--scopes", "mcp leads:write", "--json")
    return str(json.loads(installation.run("keys", "issue", *words)[1])["key"])


def test_nothing_that_people_send_is_logged(installation: Installation) -> None:
    """Good, faulty, spam and broken, by every door, until the limit is reached and after."""
    with installation.serving() as edge:
        by_json = send_json(edge)
        by_form = send_form(edge)
        token = token_of(installation)
        by_agent = [call_tool(edge, token, lead) for lead in (GOOD, FAULTY, SPAM, WRONG_KINDS)]
        assert edge.process.stdout is not None
        (installation.folder / "build" / "current").unlink()
        assert edge.await_body("/api/public/v1/readiness", b"warn")
        edge.process.send_signal(SIGTERM)
        said, complained = edge.process.communicate(timeout=patience(15))

    assert by_json == [201, 400, 201, 400, 400, 201, 422]
    assert by_form == [303, 201, 400, 400, 303, 429]
    assert b"zephyrine@example.org" in by_agent[0]
    assert all(b'"isError":true' in answer for answer in (by_agent[1], by_agent[3]))
    assert "run python -m site_build build" in complained
    assert [mark for mark in MARKS if mark.lower() in f"{said}{complained}".lower()] == []
