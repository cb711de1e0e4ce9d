"""The examples of the reference are run unchanged."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from edge_api.operation.reference.samples import is_callable
from edge_api.operations import OPERATIONS
from edge_api.schema.paths import DOCS_PAGES
from tests.content.fences import read_fences
from tests.edge.docs.conftest import Reader, read_reference
from tests.sizes import in_ci

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

_MEANT_FOR_NO_PROGRAM = {
    "access_request_form",
    "home_page",
    "llms_txt",
    "oauth_authorize",
    "oauth_consent",
    "show_search",
    "show_unsubscribe",
    "sitemap",
    "take_email_event",
    "unsubscribe",
}
"""Pages for a person, files of the site, and what the mail service signs."""


@pytest.mark.parametrize("language", ["bash", *in_ci("python", "js")])
def test_every_example_does_what_is_promised(language: str, tmp_path: Path) -> None:
    """Each operation that a program can call has one in each language, and it succeeds."""
    with read_reference(tmp_path) as reader:
        documented = reader.documented()
        examples = dict(sorted(reader.examples(language), key=_by_effect))
        got = {name: reader.run(name, fence) for name, fence in examples.items()}

    assert set(documented) - set(got) == _MEANT_FOR_NO_PROGRAM
    assert {
        name: printed for name, (status, printed) in got.items() if status not in documented[name]
    } == {}
    assert {
        name: status for name, (status, _) in got.items() if not re.fullmatch("20.", status)
    } == {}


def _by_effect(example: tuple[str, object]) -> int:
    """Put deletions before insertions, which existing rows would make fail.

    The draft comes first that others read and publish.
    """
    words = set(example[0].split("_"))
    effects = ("save", "", "delete", "insert", "revoke")
    return next((at for at, effect in enumerate(effects) if effect in words), effects.index(""))


def test_the_overview_begins_with_what_works(reader: Reader) -> None:
    """Its first request succeeds with the reader's own key, and its error is one of the API."""
    key = {"X-API-Key": reader.environment["KEY"]}
    first, error = (
        fence
        for fence in read_fences(reader.page("/docs/index.md"))
        if fence.language in {"bash", "json"}
    )
    placeholder, _, command = first.code.partition("\n")
    assert placeholder == "export KEY=fe_sk_…"
    status, printed = reader.run("first", replace(first, code=command))
    refused, _, body = reader.edge.get("/api/public/v1/posts?limit=0", key)

    assert (status, refused) == ("200", 400), printed
    assert json.loads(body) == json.loads(error.code)


def test_an_operation_without_example_says_why(reader: Reader) -> None:
    """An operation without examples has a sentence in their place."""
    text = "".join(reader.page(f"{path}index.md") for path in DOCS_PAGES)

    for operation in OPERATIONS:
        if is_callable(operation):
            continue
        section = text.partition(f'<a id="{operation.name}"></a>')[2].partition("<a id=")[0]
        assert "For a person at a browser" in section or "signs what it sends" in section
        assert "```bash" not in section
