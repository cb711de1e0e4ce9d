"""Clients that programs generate from the OpenAPI document call every operation that they offer.

An operation that a generator drops fails these tests, and so does a new one without a call here.
"""

import asyncio
import importlib
import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints
from urllib.request import urlopen

import pytest

from edge_api.admin.schemas import match_sample, new_row_sample, values_sample
from edge_api.db.table import Table
from edge_api.db.tables import ADMINISTRATIVE, EMAIL_SEND_STATE, EMAIL_UNSUBSCRIBE_TOKENS
from tests.judges.node import FOLDER, run
from tests.judges.product import Product
from tools.judges import MODULES

pytestmark = pytest.mark.size("test")

PACKAGE = "generated_client"
OPENAPI_TYPESCRIPT = MODULES / "openapi-typescript" / "bin" / "cli.js"
TSC = MODULES / "typescript" / "bin" / "tsc"
REDIRECT = "http://127.0.0.1/callback"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
LEAD = {
    "name": "Ann Lee",
    "email": "ann.lee@example.org",
    "budget_tier": "5k-10k",
    "message": "We would like to move our blog.",
}
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
ACCESS = {"type": "api_key", "name": "Reading list", "purpose": "Show posts on our intranet."}
WITHOUT_ARGUMENTS = (
    "ai_catalog",
    "api_catalog",
    "describe_api",
    "describe_api_without_slash",
    "home_page",
    "llms_txt",
    "mcp_server_card",
    "mcp_well_known_server_card",
    "oauth_keys",
    "oauth_metadata",
    "oauth_mcp_resource",
    "oauth_resource",
    "oauth_rest_resource",
    "openapi",
    "ping",
    "readiness",
    "sitemap",
)


class Offer(NamedTuple):
    """The service that clients are made for: its document in a file, and who may call it."""

    origin: str
    document: Path
    api_key: str
    access_token: str
    program: Mapping[str, str]
    """The id and the secret of an OAuth client that acts for itself."""


@pytest.fixture
def offer(product: Product, api_key: str, access_token: str, tmp_path: Path) -> Offer:
    """Return the offer of the product."""
    document = tmp_path / "openapi.json"
    with urlopen(f"{product.origin}/api/public/v1/openapi.json") as answer:  # noqa: S310
        document.write_bytes(answer.read())
    words = ("--auth", "client_secret_post", "--grants", "client_credentials")
    registered = product.register(*words, "--scopes", "posts:read")
    program = {name: registered[name] for name in ("client_id", "client_secret")}
    return Offer(product.origin, document, api_key, access_token, program)


def operations_of(document: Path) -> set[str]:
    """Return the names of all operations of the document."""
    paths: dict[str, Any] = json.loads(document.read_text(encoding="utf-8"))["paths"]
    entries = [entry for methods in paths.values() for entry in methods.values()]
    return {each["operationId"] for each in entries if "operationId" in each}


class GeneratedClient:
    """The package that openapi-python-client wrote, and which of its operations were called."""

    def __init__(self, origin: str, **tokens: str) -> None:
        package = importlib.import_module(PACKAGE)
        strict = {"base_url": origin, "raise_on_unexpected_status": True, "timeout": 60}
        self._clients = {
            name: package.AuthenticatedClient(token=token, **strict)
            for name, token in tokens.items()
        }
        folder = Path(str(package.__file__)).parent / "api"
        self.modules = {
            file.stem: f"{PACKAGE}.api.{file.parent.name}.{file.stem}"
            for file in folder.glob("*/*.py")
            if file.stem != "__init__"
        }
        self.called: set[str] = set()

    def call(self, name: str, status: int = 200, by: str = "key", **arguments: Any) -> Any:
        """Return what the operation answers, in a type of the package."""
        function = importlib.import_module(self.modules[name]).sync_detailed
        hints = get_type_hints(function)
        given = {key: typed(hints[key], value) for key, value in arguments.items()}
        answer = function(client=self._clients[by], **given)
        assert answer.status_code == status, (name, answer)
        self.called.add(name)
        return answer.parsed

    def close(self) -> None:
        """Close its connections."""
        for client in self._clients.values():
            client.get_httpx_client().close()


def typed(hint: Any, value: Any) -> Any:
    """Return an object as the first class of the hint that can be made of one, if there is any."""
    classes = [each for each in get_args(hint) or (hint,) if hasattr(each, "from_dict")]
    return classes[0].from_dict(value) if classes and isinstance(value, Mapping) else value


def use_table(client: GeneratedClient, table: Table) -> None:
    """Insert a row, read it, change it and delete it; a table of one row has that already."""
    name, match = table.name, match_sample(table)
    row, values = {**new_row_sample(table), **match}, values_sample(table)
    if table is EMAIL_SEND_STATE:
        client.call(f"admin_delete_{name}", body={"match": match})
    (stored,) = client.call(f"admin_insert_{name}", 201, body=row)
    filters = {column: f"eq.{value}" for column, value in match.items()}
    (read,) = client.call(f"admin_read_{name}", filters=filters, limit=1)
    assert read == stored
    (changed,) = client.call(f"admin_update_{name}", body={"match": match, "values": values})
    differing = {
        column
        for column, value in changed.to_dict().items()
        if column != "updated_at" and value != stored.to_dict()[column]
    }
    assert differing <= set(values)  # no default is sent for what the caller left out
    if table is EMAIL_UNSUBSCRIBE_TOKENS:
        for operation in ("show_unsubscribe", "unsubscribe"):
            assert "<html" in client.call(operation, token=row["token"])
        client.call("admin_delete_suppressed_emails", body={"match": {"email": row["email"]}})
    if table is not EMAIL_SEND_STATE:
        assert len(client.call(f"admin_delete_{name}", body={"match": match})) == 1


def use_oauth(client: GeneratedClient, program: Mapping[str, str]) -> None:
    """Register, ask a person, and get a token and end it."""
    registered = client.call("oauth_register", 201, body={"redirect_uris": [REDIRECT]})
    asked: dict[str, Any] = {"client_id": registered.client_id, "redirect_uri": REDIRECT}
    forged = {**asked, "decision": "allow", "seal": "of nobody"}
    asked |= {"response_type": "code", "code_challenge_method": "S256"}
    assert "<html" in client.call("oauth_authorize", code_challenge=CHALLENGE, **asked)
    assert "<html" in client.call("oauth_consent", 403, body=forged)
    wanted = {"grant_type": "client_credentials", **program}
    token = client.call("oauth_token", body=wanted).access_token
    client.call("oauth_revoke", body={"token": token, **program})


def use_writing(client: GeneratedClient) -> None:
    """Write a post, publish it, and make it a draft again."""
    draft = {"markdown": "# A Python post\n\nIts text.\n"}
    assert client.call("check_post", body=draft).findings is not None
    saved = client.call("save_draft", body=draft).source
    assert saved in [
        client.call("get_source", slug=each.slug).source
        for each in client.call("list_sources").sources
    ]
    client.call("add_picture", 201, body={"name": "python.png", "data": PICTURE})
    named = {"slug": saved.slug, "if_match": f'"{saved.version}"'}
    published = client.call("publish_post", body={}, **named).source
    named["if_match"] = f'"{published.version}"'
    assert client.call("withdraw_post", **named).source.state == "draft"


@pytest.mark.usefixtures("judges")
async def test_python_client_calls_everything(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """openapi-python-client generates every operation without a warning, and each can be called."""
    settings = tmp_path / "settings.json"  # it ignores application/xml without this setting
    overrides = {"application/xml": "text/plain"}
    settings.write_text(json.dumps({"content_type_overrides": overrides, "post_hooks": []}))
    words = [
        "--path",
        str(offer.document),
        "--output-path",
        str(tmp_path / PACKAGE),
        "--meta",
        "none",
    ]
    generator = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "openapi_python_client",
        "generate",
        *words,
        "--config",
        str(settings),
        "--fail-on-warning",
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await generator.communicate()
    assert generator.returncode == 0, said.decode()
    monkeypatch.syspath_prepend(str(tmp_path))

    with closing(
        GeneratedClient(offer.origin, key=offer.api_key, token=offer.access_token)
    ) as client:
        assert set(client.modules) == operations_of(offer.document)
        await asyncio.to_thread(use_all, client, offer.program)
    assert set(client.modules) - client.called == set()


def use_all(client: GeneratedClient, program: Mapping[str, str]) -> None:
    """Call every operation."""
    for table in ADMINISTRATIVE.values():
        use_table(client, table)
    use_oauth(client, program)
    (post,) = client.call("list_posts", limit=1).posts
    assert client.call("get_post", slug=post.slug).title == post.title
    assert client.call("search_posts", q="edge", limit=1).count > 0
    assert "<html" in client.call("show_search", q="edge")
    use_writing(client)
    created = client.call("create_lead", 201, body=LEAD)
    assert created.lead in client.call("list_leads", limit=200).leads
    wish = {"email": "ann@readers-club.net", "consent": "I want it."}
    assert client.call("add_subscriber", 202, body=wish).status == "asked"
    january: dict[str, Any] = {"since": date(2026, 1, 1), "until": date(2026, 1, 31)}
    assert client.call("read_stats", **january).path == ""
    assert client.call("analyze", body={"text": "One page, fanned a little."}).metrics.words == 5
    claim = client.call("request_access", 201, body=ACCESS).claim_token
    assert client.call("claim_credential", 202, body={"claim_token": claim}).status == "pending"
    client.call("access_request_form", 303)
    signed = {"webhook_id": "1", "webhook_timestamp": "1", "webhook_signature": "v1,AAAA"}
    event = {"type": "email.bounced", "data": {"email": "ann@example.org"}}
    assert client.call("take_email_event", 404, body=event, **signed).error  # it is off here
    client.call("mcp", by="token", body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    for name in WITHOUT_ARGUMENTS:
        assert client.call(name), name


@pytest.mark.usefixtures("judges")
async def test_typescript_client_calls_everything(offer: Offer, tmp_path: Path) -> None:
    """The types of openapi-typescript have every operation; openapi-fetch can call each.

    The compiler holds the list of calls against the list of operations, and each call against its
    types; then the calls are run.
    """
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    script = Path(shutil.copy(FOLDER / "generated_client.ts", tmp_path))
    words = (str(offer.document), "-o", "openapi.d.ts")
    made = await run(OPENAPI_TYPESCRIPT, *words, folder=tmp_path)
    assert made.status == 0, str(made)
    options = (
        "--noEmit",
        "--strict",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--skipLibCheck",
    )
    checked = await run(TSC, *options, script.name, folder=tmp_path)
    assert checked.status == 0, str(checked)

    keys = (offer.api_key, offer.access_token, *offer.program.values())
    called = await run(script, offer.origin, *keys, folder=tmp_path)
    assert called.status == 0, str(called)
    statuses = json.loads(called.said.splitlines()[-1])
    assert set(statuses) == operations_of(offer.document)
    other = {"access_request_form": 303, "oauth_consent": 403, "take_email_event": 404}
    other |= {"claim_credential": 202, "create_lead": 201, "oauth_register": 201}
    other |= {"request_access": 201, "add_picture": 201, "add_subscriber": 202}
    other |= {name: 201 for name in statuses if name.startswith("admin_insert_")}
    assert statuses == {name: other.get(name, 200) for name in statuses}
