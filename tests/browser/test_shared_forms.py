"""Forms in a shared text that aim at the desk, pressed by the owner who is signed in."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest
from playwright.sync_api import Browser

from edge_api.operations import DESK
from tests.browser.conftest import Journal, serve, signed_in
from tests.edge.conftest import CONTENT

pytestmark = pytest.mark.size("test")
ROUTES = sorted({re.sub("[{}]", "", each.path) for each in DESK})
FORMS = "\n".join(
    f'<form method="post" action="{route}"><button name="do" value="publish">Go</button></form>\n'
    for route in ROUTES
)


PRESS_ALL = """
async () => {
  const refused = []
  document.addEventListener("securitypolicyviolation", (event) => {
    refused.push(event.effectiveDirective)
  })
  for (const button of document.querySelectorAll('form[action^="/desk/"] > button')) {
    const count = refused.length
    button.click()
    for (let wait = 0; wait < 200 && refused.length === count; wait += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  return refused
}
"""
"""Presses the buttons one after the other; returns the directives that refused them."""


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Journal, str]]:
    """Return a journal, and the path of a shared draft with a form for each route of the desk."""
    folder = tmp_path_factory.mktemp("forms")
    content = folder / "content"
    copytree(CONTENT, content)
    (content / "posts/forms.md").write_text(
        f"---\ntitle: Forms\ndate: 2026-01-01\nstatus: draft\n---\n\n{FORMS}"
    )
    with serve(folder, content) as journal:
        words = ["share", "forms", "--content", content, "--output", folder / "build"]
        done = subprocess.run(
            [sys.executable, "-m", "site_build", *map(str, words), "--site-url", journal.url],
            check=True,
            capture_output=True,
            text=True,
        )
        found = re.search(r"/shared/[\w-]+/", done.stdout)
        assert found is not None, done.stdout
        yield journal, found[0]


def count_changes(store: Path) -> int:
    """Return how many entries the audit log has."""
    with closing(sqlite3.connect(store)) as opened:
        return int(opened.execute("SELECT count(*) FROM audit_log").fetchone()[0])


def test_no_form_of_a_shared_text_is_sent(sharing: tuple[Journal, str], browser: Browser) -> None:
    """The browser refuses each, since the policy of the page forbids it."""
    journal, path = sharing
    with signed_in(browser, journal, "/desk/") as page:
        page.goto(f"{journal.url}{path}")
        sent: list[str] = []
        page.on("request", lambda each: sent.append(each.method))
        before = count_changes(journal.installation.store)
        assert len(ROUTES) > 40
        assert page.evaluate(PRESS_ALL) == ["form-action"] * len(ROUTES)
        assert page.evaluate("location.pathname") == path
        assert "POST" not in sent
        assert count_changes(journal.installation.store) == before
