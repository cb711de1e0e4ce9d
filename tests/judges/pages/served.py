"""Journals under judgement: each really built, and served by a process of its own."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from edge_api.schema import paths
from tests.edge.conftest import run_build
from tests.edge.edge_process import Installation, ServedEdge, free_port
from tests.judges.product import ALL_SCOPES, Product

NOW = "2026-11-30T13:00:00Z"
"""Builds stand still at this instant, so that a run of tomorrow judges the same pages."""
_REDIRECT = "https://client.example/callback"
_UNLIMITED = (
    "AUTHENTICATED",
    "FAILED_AUTH",
    "LEADS",
    "LEADS_ATTEMPTS",
    "TOKEN",
    "ANALYZE",
    "SUBSCRIBE",
)
_ADMIN = f"{paths.AUDIENCES['rest']}/admin"


@dataclass(frozen=True, slots=True)
class Served:
    """A journal and the edge that serves it."""

    origin: str
    """Its address: scheme, host and port."""
    site_url: str
    """The origin that its own pages name."""
    folder: Path
    """The build: `site/` and what lies beside it."""
    edge: ServedEdge
    product: Product
    key: str
    """The key of its administrator."""

    @property
    def site(self) -> Path:
        """The folder of public files."""
        return self.folder / "site"

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers by their names in lower case, and body."""
        status, sent, body = self.edge.get(path, headers)
        return status, {name.lower(): value for name, value in sent.items()}, body

    def send(self, path: str, body: Any) -> tuple[int, Any]:
        """Post JSON as the administrator; return status and JSON."""
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        status, _, said = self.edge.post(path, json.dumps(body).encode(), headers)
        return status, json.loads(said) if said else None

    def consent_path(self, client_name: str = "A client") -> str:
        """Register a client, and return the path of the question whether it may act."""
        body = {"client_name": client_name, "redirect_uris": [_REDIRECT]}
        status, client = self.send(paths.REGISTER_CLIENT, body)
        assert status == 201, client
        asked = {
            "response_type": "code",
            "client_id": client["client_id"],
            "redirect_uri": _REDIRECT,
            "code_challenge": "x" * 43,
            "code_challenge_method": "S256",
        }
        return f"{paths.AUTHORIZE}?{urlencode(asked)}"

    def unsubscribe_path(self, token: str, address: str) -> str:
        """Return the path of a link in mail; `token` has 64 hexadecimal digits."""
        body = {"email": address, "token": token}
        status, said = self.send(f"{_ADMIN}/email_unsubscribe_tokens", body)
        assert status == 201, said
        return f"{paths.UNSUBSCRIBE}?token={token}"

    def confirmation_path(self, address: str) -> str:
        """Ask for the newsletter, and return the path of the link in the mail that follows."""
        wish = {"email": address, "consent": "New posts by mail."}
        status, said = self.send(paths.SUBSCRIBERS, wish)
        assert status == 202, said
        for _ in range(600):
            for file in (self.product.installation.folder / "mail" / "new").glob("*"):
                message = message_from_bytes(file.read_bytes(), policy=default)
                if message["To"] == address:
                    body = message.get_body(("plain",))
                    assert body is not None
                    (link,) = re.findall(rf"{paths.CONFIRM_SUBSCRIPTION}\?\S+", body.get_content())
                    return str(link)
            time.sleep(0.1)
        raise AssertionError(f"nothing was mailed to {address}")


@contextmanager
def serve(content: Path, folder: Path, site_url: str | None = None) -> Iterator[Served]:
    """Build `content` and serve it from `folder`; `site_url` where it is not the real origin."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    run_build(content, folder / "build", now=NOW, site_url=site_url or origin)
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "SITE_URL": site_url or origin,
        "ACCESS_REQUESTS": "on",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal.example",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street",
        "OWNER_EMAIL": "owner@journal.example",
        "SMTP_URL": f"maildir:{folder}/mail",
        **{f"RATE_{name}": "0" for name in _UNLIMITED},
    }
    installation = Installation(folder, settings)
    with installation.serving() as edge:
        current = (folder / "build" / "current").resolve()
        product = Product(installation, origin)
        key = product.issue("api_key", ALL_SCOPES)
        yield Served(origin, site_url or origin, current, edge, product, key)
