"""A browser before a running edge, which serves a real build of the small journal."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.edge.conftest import CONTENT, run_build
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port
from tests.patience import patience

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_MODULES = """
Promise.all(
  [...document.querySelectorAll('[data-module^="/theme/"]')]
    .map(({ dataset }) => import(dataset.module))
).then(() => null)
"""


@dataclass(frozen=True)
class Journal:
    """The served journal, and a key to look into its store."""

    url: str
    edge: ServedEdge
    key: str
    installation: Installation
    """The folder in which its operator runs commands."""

    def leads(self) -> list[dict[str, Any]]:
        """Return every stored lead, newest first."""
        path = "/api/public/v1/admin/leads?order=created_at.desc,id.desc"
        status, _, body = self.edge.get(path, {"X-API-Key": self.key})
        assert status == 200
        return list(json.loads(body))


@contextmanager
def serve(folder: Path, content: Path, **settings: str) -> Iterator[Journal]:
    """Build a journal in a folder, and serve it by a process of its own with further settings."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    run_build(content, folder / "build", site_url=url)
    settings |= {
        "PORT": str(port),
        "DATABASE_URL": f"sqlite:///{folder}/var/edge.db",
        "BUILD_DIR": str(folder / "build"),
    }
    installation = Installation(folder, settings)
    with installation.serving() as edge:
        assert edge.process.stdout is not None
        key = next(line for line in edge.process.stdout if "fe_sk_" in line).split()[-1]
        yield Journal(url, edge, key, installation)


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    """Return the small journal, served without limits."""
    limits = {"ACCESS_REQUESTS": "on", "RATE_LEADS": "0", "RATE_TOKEN": "0"}
    with serve(tmp_path_factory.mktemp("browser"), CONTENT, **limits) as served:
        yield served


@contextmanager
def signed_in(browser: Browser, journal: Journal, path: str, **context: Any) -> Iterator[Page]:
    """Open a page of the desk, signed in with the key of the journal; `context` is the browser."""
    with browser.new_context(**context) as opened:
        page = opened.new_page()
        page.goto(f"{journal.url}{path}")
        page.get_by_label("Your API key").fill(journal.key)
        page.get_by_role("button", name="Sign in").click()
        assert page.url == f"{journal.url}{path}"
        yield page


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of the system's Chromium."""
    found = subprocess.run(
        [str(ROOT / "tools" / "provide"), "chromium"],
        check=True,
        capture_output=True,
        text=True,
        timeout=patience(600),
    )
    return found.stdout.strip()


@contextmanager
def open_browser(chromium: str) -> Iterator[Browser]:
    """Keep a browser open, with a fresh profile."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return the system's Chromium."""
    with open_browser(chromium) as running:
        yield running


def settle(page: Page) -> None:
    """Wait until a page can all that it can do beyond being read: that comes after its paint."""
    page.locator(".lamp[aria-pressed]").wait_for()
    page.evaluate(_MODULES)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page of a reader's own."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def agent_page(browser: Browser, chromium: str) -> Iterator[Page]:
    """Return a page in a browser whose agents know WebMCP."""
    options = [*ARGUMENTS, "--enable-features=WebMCP"]
    able = browser.browser_type.launch(executable_path=chromium, args=options)
    yield able.new_page()
    able.close()
