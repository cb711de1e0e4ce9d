"""Places that show what somebody sent: searches, addresses, forms, names of programs, mail."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from edge_api.db.tables import LEADS
from edge_api.mail.messages import Envelope, compose
from edge_api.schema import paths
from tests.judges.pages.hostile import tamed
from tests.judges.pages.running import Shown
from tests.judges.pages.served import Served

_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_ENVELOPE = Envelope(
    "0190a000-0000-7000-8000-000000000000",
    "owner@journal.example",
    "ann@example.org",
    _NOW,
    "journal.example",
)


def addressed(payloads: Sequence[str]) -> Iterator[Shown]:
    """Yield pages whose address has a payload in it."""
    templates = (
        f"{paths.SEARCH}?q={{}}",
        "/{}",
        "/tags/{}/",
        f"{paths.UNSUBSCRIBE}?token={{}}",
        f"{paths.AUTHORIZE}?client_id={{}}&redirect_uri={{}}&response_type=code",
    )
    for number, payload in enumerate(payloads):
        sent = quote(payload, safe="")
        for template in templates:
            yield Shown(f"{template} {number}", template.format(sent, sent))


def filled_in(served: Served, payloads: Sequence[str]) -> Iterator[Shown]:
    """Yield both forms as they come back when each of their fields holds a payload."""
    forms = {
        "/contact/": ("name", "email", "budget_tier", "message", "consent", "consent_text"),
        "/contact/access/": ("name", "email", "purpose", "type"),
    }
    for number, payload in enumerate(payloads):
        for path, fields in forms.items():
            body = urlencode(dict.fromkeys(fields, payload), errors="replace").encode()
            headers = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "text/html",
                "Origin": served.origin,
            }
            status, sent, html = served.edge.post(path, body, headers)
            assert status in (200, 303, 400, 409, 413, 422), (path, status, html[:200])
            if status != 303:
                yield Shown(f"form {path} {number}", path, html, sent)


def named(served: Served, payloads: Sequence[str]) -> Iterator[Shown]:
    """Yield the question whether a program may act that bears a payload for a name."""
    for number, payload in enumerate(payloads):
        yield Shown(f"consent {number}", served.consent_path(tamed(payload)[:100]))


def _cut(payload: str) -> Mapping[str, str]:
    """Return a lead's fields with as much of a payload as each of them takes."""
    text = tamed(payload)
    return {"name": text[:100], "budget_tier": text[:50], "message": payload.replace("\0", "")}


def mailed(payloads: Sequence[str]) -> Iterator[Shown]:
    """Yield the HTML of the mail that tells of a lead whose fields hold a payload."""
    for number, payload in enumerate(payloads):
        row = LEADS.new_row(
            {"email": "ann@example.org", **_cut(payload)},
            "2026-11-20T00:00:00.000000Z",
            lambda: "0190a000-0000-7000-8000-000000000000",
        )
        site = {"site_title": payload, "site_url": "https://journal.example"}
        message = compose("lead_notification", _ENVELOPE, {"lead": row, "desk_url": "", **site})
        html = message.get_body(("html",))
        assert html is not None
        yield Shown(f"mail {number}", "", html.get_content().encode())
