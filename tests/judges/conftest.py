"""The suites and clients that judge from outside, installed; and the edge that they judge."""

from collections.abc import AsyncIterator, Iterator
from shutil import copytree

import pytest

from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import Installation, free_port
from tests.edge.writing_process import writing
from tests.judges.person import Person, browser
from tests.judges.product import ALL_SCOPES, Product
from tools import judges as installation


@pytest.fixture(scope="session")
def judges() -> None:
    """Have what `package-lock.json` names installed."""
    installation.prepare()


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Return the product as its user runs it, without limits, serving the small journal.

    It can be written.
    """
    folder, port = tmp_path_factory.mktemp("judged"), free_port()
    origin, content = f"http://127.0.0.1:{port}", folder / "content"
    copytree(CONTENT, content)
    run_build(content, folder / "build", site_url=origin)
    settings = {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "SITE_URL": origin,
        "RATE_AUTHENTICATED": "0",
        "RATE_FAILED_AUTH": "0",
        "ACCESS_REQUESTS": "on",
        "RATE_LEADS": "0",
        "RATE_TOKEN": "0",
        "WRITING": "on",
        "NEWSLETTER": "on",
        "NEWSLETTER_FROM": "post@journal.example",
        "NEWSLETTER_POSTAL_ADDRESS": "1 Edge Street",
        "OWNER_EMAIL": "owner@journal.example",
        "SMTP_URL": f"maildir:{folder}/mail",
        "MAIL_DISPATCHER": "off",
    }
    served = Installation(folder, settings)
    with served.serving() as edge, writing(folder, content, folder / "build", origin):
        assert origin in edge.greeting, edge.greeting
        yield Product(served, origin)


@pytest.fixture(scope="session")
def api_key(product: Product) -> str:
    """Return an API key that may do everything."""
    return product.issue("api_key", ALL_SCOPES)


@pytest.fixture(scope="session")
def access_token(product: Product) -> str:
    """Return an access token for MCP that may do everything, as an operator hands it out."""
    return product.issue("access_token", ALL_SCOPES)


@pytest.fixture
async def person(api_key: str) -> AsyncIterator[Person]:
    """Return somebody with a fresh browser and the API key."""
    async with browser() as session:
        yield Person(session, api_key)
