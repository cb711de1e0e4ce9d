"""The documentation names all that there is: a declaration without a word is found here."""

from pathlib import Path

import pytest

from edge_api.__main__ import _COMMANDS
from edge_api.schema.operators import OPERATORS
from edge_api.schema.problems import PROBLEMS
from edge_api.schema.scopes import SCOPES
from edge_api.schema.tables import ADMINISTRATIVE
from edge_api.settings import SETTINGS
from site_build.front_matter import PostFrontMatter

DOCS = Path(__file__).parents[2] / "docs"
API = [
    *(f"| `{scope}` | {sentence} |" for scope, sentence in SCOPES.items()),
    *(f"| `{name}` | {operator.sentence} |" for name, operator in OPERATORS.items()),
    *(f"| {problem.status} | {problem.sentence} |" for problem in PROBLEMS.values()),
    *(f"**{table.name}**: {table.sentence}" for table in ADMINISTRATIVE.values()),
    *(f"`{column}`" for table in ADMINISTRATIVE.values() for column in table.readable),
]
OPERATORS_PAGE = [
    *(f"| `{name}` |" for name in SETTINGS),
    *(setting.sentence for setting in SETTINGS.values()),
    *(f"`{command}" for command in _COMMANDS if command not in ("serve", "keys", "settings")),
    *(f"python -m edge_api {command}" for command in ("serve", "keys", "settings")),
]
EDITORS = [
    *(f"| `{key}` |" for key in PostFrontMatter.model_fields),
    *(f"python -m site_build {command}" for command in ("new", "check", "build", "publish")),
]


@pytest.mark.parametrize(
    ("page", "words"),
    [("api.md", API), ("operators.md", OPERATORS_PAGE), ("editors.md", EDITORS)],
)
def test_page_names_all_that_is_declared(page: str, words: list[str]) -> None:
    """Nothing that is declared is left out of the page it belongs to."""
    text = (DOCS / page).read_text(encoding="utf-8")

    assert [word for word in words if word not in text] == []
