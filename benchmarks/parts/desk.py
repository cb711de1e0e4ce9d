"""The desk's screens over many leads, against Datasette's page of the same table."""

import json
import re
from contextlib import ExitStack
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlencode, urlsplit

from benchmarks import peers
from benchmarks.ground import Edge, Ground
from benchmarks.load import Load
from benchmarks.peers import DATASETTE
from benchmarks.race import EDGE, Runner, race
from benchmarks.section import Section, compare
from edge_api.desk.screens import SIGN_IN_PATH
from edge_api.desk.sessions import HIDDEN_FIELD

LEADS: Final = 100_000
_SHOWN: Final = 500
"""Questions of a kind: more than are asked in a round of most."""
_COMMON: Final = ("talk", "journal", "readers", "become", "enquiry", "about", "could", "would")
"""Words that stand in every message of `benchmarks/leads.py`."""
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_ABOUT: Final = (
    f"One connection of a person who is signed in, {LEADS:,} leads: today's overview, the inbox's "
    "pages 1 to 20, single leads, and searches. Datasette's page of the newest 50 leads, as HTML "
    "and without counts, is the measure of all: one that shows rows of a table, no search."
)


def measure(ground: Ground) -> Section:
    """Measure every screen, each in turn with the peer's page."""
    table = "/edge/leads?_sort_desc=created_at&_size=50&_nocount=1&_nofacet=1&_nosuggest=1"
    with ExitStack() as stack:
        edge = stack.enter_context(ground.edge("desk", leads=LEADS))
        posts = ground.folder / "posts.db"
        if not posts.exists():
            peers.write_posts(ground.site() / "current" / "posts.json", posts)
        peer = stack.enter_context(peers.datasette(posts, ground.database("desk-peer", LEADS)))
        cookie = {"Cookie": sign_in(edge)}
        races = {
            name: race(
                name.capitalize(),
                [
                    Runner(EDGE, edge.server, Load(edge.server.origin, asked, cookie, 1)),
                    Runner(DATASETTE, peer, Load(peer.origin, [table], {}, 1)),
                ],
                seconds=2,
            )
            for name, asked in list_screens(edge).items()
        }
    reached = {f"{name}/{DATASETTE}": compare(held, DATASETTE) for name, held in races.items()}
    return Section("The desk", _ABOUT, tuple(races.values()), reached=reached)


def list_screens(edge: Edge) -> dict[str, list[str]]:
    """Return the addresses of each kind of screen, by the names of the table's lines."""
    ids = [each["id"] for each in json.loads(edge.get("/admin/leads?select=id&limit=100"))]
    numbers = range(0, LEADS, LEADS // _SHOWN)

    def find(words: str) -> str:
        return f"/desk/leads/?{urlencode({'q': words})}"

    return {
        "desk overview": ["/desk/"],
        "desk inbox": [f"/desk/leads/?page={page}" for page in range(1, 21)],
        "desk lead": [f"/desk/leads/{each}/" for each in ids],
        "desk address": [find(f"reader{number}@example.com") for number in numbers],
        "desk name": [find(f"Reader {number}") for number in numbers],
        "desk frequent": list(map(find, _COMMON)),
        "desk absent": [find(f"nowhere{number}") for number in numbers],
    }


def sign_in(edge: Edge) -> str:
    """Return the cookie of a session at the desk; raises SystemExit where it does not open."""
    connection = HTTPConnection(urlsplit(edge.server.origin).netloc, timeout=60)
    connection.request("GET", SIGN_IN_PATH)
    form = connection.getresponse()
    token = re.search(rf'name="{HIDDEN_FIELD}" value="([^"]+)"', form.read().decode())
    known = str(form.headers.get("Set-Cookie")).partition(";")[0]
    body = urlencode({"key": edge.key, HIDDEN_FIELD: token[1] if token else ""})
    headers = {**_FORM, "Sec-Fetch-Site": "same-origin", "Cookie": known}
    connection.request("POST", SIGN_IN_PATH, body, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != HTTPStatus.SEE_OTHER:
        raise SystemExit(f"the desk answered {answer.status} in place of a session")
    return str(answer.headers["Set-Cookie"]).partition(";")[0]
