"""Lighthouse on each screen of the desk, as the owner sees it who has signed in."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from selectolax.lexbor import LexborHTMLParser

from edge_api.desk.sessions import HIDDEN_FIELD
from tests.judges.pages.lighthouse import Demands, faults_of, run
from tests.judges.pages.served import Served

pytestmark = pytest.mark.size("judge")

GUISES = ("mobile light", "desktop dark")
"""axe has judged each screen in every combination; Lighthouse takes each device and each scheme."""
_PRIVATE = Demands(is_listed=False, is_timed=False)
_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunte"
_ADMIN = "/api/public/v1/admin"


def sign_in(served: Served) -> str:
    """Sign in with the key of the journal; return the cookie."""
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Sec-Fetch-Site": "same-origin",
        "Origin": served.site_url,
    }
    _, shown, body = served.edge.get("/desk/sign-in/")
    token = LexborHTMLParser(body).css_first(f"[name='{HIDDEN_FIELD}']")
    assert token is not None
    form = urlencode({"key": served.key, HIDDEN_FIELD: token.attributes["value"]}).encode()
    headers["Cookie"] = shown["Set-Cookie"].partition(";")[0]
    status, sent, _ = served.edge.post("/desk/sign-in/", form, headers)
    assert status == 303
    return sent["Set-Cookie"].partition(";")[0]


def fill(served: Served) -> str:
    """Store what screens of the desk show; return the key of a lead."""
    lead: dict[str, Any] = {"name": _WORD, "email": "ann@example.org", "budget_tier": "b"}
    spam = {**lead, "status": "spam", "spam_score": 9, "spam_reasons": ["many_links"]}
    leads = [{**each, "message": f"{_WORD}\n" * 9} for each in (lead, lead, spam)]
    log = {"template_name": "x", "recipient_email": "ann@example.org", "status": "bounced"}
    asked = {"type": "api_key", "name": "Bot", "purpose": "Read.", "scopes": ["posts:read"]}
    (lead_id, *_) = [row["id"] for each in leads for row in post(served, f"{_ADMIN}/leads", [each])]
    post(served, f"{_ADMIN}/email_send_log", [log])
    post(served, "/api/public/access-requests", asked)
    return str(lead_id)


def post(served: Served, path: str, body: Any) -> Any:
    """Create what a body says; return the answer."""
    status, answer = served.send(path, body)
    assert status == 201, answer
    return answer


@pytest.mark.parametrize("guise", GUISES)
async def test_each_screen_has_a_hundred(
    chromium: str, journal: Served, tmp_path: Path, guise: str
) -> None:
    """In all categories, except that nobody may find these pages; the sign-in page too."""
    cookie, lead = sign_in(journal), fill(journal)
    screens = ("", "leads/", "leads/?status=spam&pick=all", f"leads/{lead}/?status=new", "tables/")
    settings = ("settings/", "suppressed/", "webhooks/", "tables/leads/new/")
    more = ("tables/leads/", f"tables/leads/{lead}/", "access/", "mail/", "audit/")
    pages = {**dict.fromkeys((*screens, *more, *settings), cookie), "sign-in/": ""}
    found = {}
    for path, given in pages.items():
        address = f"{journal.origin}/desk/{path}"
        (verdict,) = await run(chromium, address, [guise], tmp_path, given)
        if faults := faults_of(verdict, _PRIVATE):
            found[path] = faults
    assert found == {}
