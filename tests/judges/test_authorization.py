"""The authorization server of the product, judged by the official suite and by a strict client."""

import json
import re
from pathlib import Path

import pytest
from joserfc.jwk import ECKey

from tests.edge.edge_process import free_port
from tests.judges.company import OPENED, accompany
from tests.judges.conformance import faults, verdicts
from tests.judges.node import CONFORMANCE, FOLDER
from tests.judges.person import Person
from tests.judges.product import Product

pytestmark = [pytest.mark.usefixtures("judges"), pytest.mark.size("test")]
SCOPES = "mcp posts:read leads:read"
# A client of the operator's that acts for itself, and for whoever consents.
BOTH = (
    "--grants",
    "authorization_code refresh_token client_credentials",
    "--scopes",
    SCOPES,
    "--redirect-uri",
    "http://127.0.0.1/callback",
)


@pytest.mark.alone
@pytest.mark.size("ci")
async def test_both_scenarios_of_the_official_suite_pass(
    product: Product, person: Person, tmp_path: Path
) -> None:
    """Metadata and authorization code grant hold; of clients the suite knows public ones alone."""
    port = free_port()
    redirect = ("--redirect-uri", f"http://127.0.0.1:{port}/callback")
    client_id = product.register(*redirect, "--scopes", SCOPES)["client_id"]
    words = ["--url", product.origin, "--client-id", client_id, "--port", str(port)]
    words += ["--resource", product.endpoint, "--output-dir", str(tmp_path)]
    outcome = await accompany(
        CONFORMANCE,
        "authorization",
        *words,
        folder=tmp_path,
        person=person,
        asks=re.compile(rf"({re.escape(product.origin)}/api/public/oauth/authorize\?\S+)"),
    )

    found = verdicts(tmp_path)
    assert outcome.status == 0, f"{faults(found.values())}\n{outcome}"
    assert set(found) == {"authorization-server-metadata-endpoint", "authorization-code-grant"}
    assert all(verdict.holds for verdict in found.values()), faults(found.values())


async def walk(product: Product, person: Person, folder: Path, name: str, **client: object) -> None:
    """Let the strict client walk; it must come to the end."""
    outcome = await accompany(
        FOLDER / "oauth.mjs",
        name,
        product.origin,
        json.dumps(client),
        folder=folder,
        person=person,
        asks=OPENED,
    )
    assert outcome.status == 0, str(outcome)


@pytest.mark.parametrize("name", ["client_secret_basic", "client_secret_post"])
async def test_a_client_with_a_secret_gets_tokens(
    product: Product, person: Person, tmp_path: Path, name: str
) -> None:
    """A secret counts in the way that the client is registered for, spelled as RFC 6749 says."""
    client = product.register("--auth", name, *BOTH)

    secret, client_id = client["client_secret"], client["client_id"]
    await walk(product, person, tmp_path, name, client_id=client_id, client_secret=secret)


async def test_a_client_with_a_key_gets_tokens(
    product: Product, person: Person, tmp_path: Path
) -> None:
    """An assertion signed by the client counts once, for this server, while it is fresh."""
    key = ECKey.generate_key("P-256", auto_kid=True)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [key.as_dict(private=False)]}), encoding="utf-8")
    words = ("--auth", "private_key_jwt", "--jwks", str(keys))
    client_id = product.register(*words, *BOTH)["client_id"]

    private = key.as_dict(private=True)
    await walk(
        product, person, tmp_path, "private_key_jwt", client_id=client_id, private_jwk=private
    )


@pytest.mark.parametrize(
    "name",
    [
        "discovery",
        "registration",
        "refusals",
        "code",
        "redemption",
        "rotation",
        "replayed_code",
        "replayed_refresh_token",
        "revocation",
    ],
)
async def test_a_strict_client_comes_to_the_end_of_its_walk(
    product: Product, person: Person, tmp_path: Path, name: str
) -> None:
    """oauth4webapi, which takes nothing that a norm forbids, finds what it has to find."""
    await walk(product, person, tmp_path, name)
