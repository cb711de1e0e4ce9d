"""The documentation names all that there is: a declaration without a word is found here."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_api.__main__ import main as edge_command
from edge_api.admin.filters import OPERATORS
from edge_api.db.problems import PROBLEMS
from edge_api.db.table import Column
from edge_api.db.tables import ADMINISTRATIVE
from edge_api.db.types import ColumnType
from edge_api.mcp.tools import bind_tools
from edge_api.operations import OPERATIONS
from edge_api.schema.credentials import SCOPES
from edge_api.settings import SETTINGS
from site_build.__main__ import main as build_command
from site_build.content.front_matter import PELICAN_KEYS, PostFrontMatter
from tools.tables import replace_tables, write_row

ROOT = Path(__file__).resolve().parents[2]
ADMIN = re.compile("/admin/[a-z_]+")

Command = Callable[[list[str]], int]


def read(page: str) -> str:
    """Return a page of the documentation."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def missing(page: str, words: list[str]) -> list[str]:
    """Return those of `words` that the page lacks."""
    text = read(page)
    return [word for word in words if word not in text]


def help_of(command: Command, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command says about itself."""
    assert command([*words, "--help"]) == 0
    return capsys.readouterr().out


def commands_in(text: str) -> list[str]:
    """Return the commands that a help text lists."""
    return re.findall(r"^  ([a-z][a-z-]*)(?=  |$)", text, re.MULTILINE)


def options_in(text: str) -> set[str]:
    """Return the options that a help text lists."""
    return set(re.findall(r"--[a-z-]+", text)) - {"--help"}


def state_absence(column: Column) -> str:
    """Return what a row gets that leaves the column out."""
    if column.generated:
        instant = "the present instant" + (", at each change" if column.on_update_now else "")
        return "a new UUID" if column.generated == "id" else instant
    if column.default is not None:
        return f"`{column.default}`"
    return "NULL" if column.nullable else "needed"


def state_bounds(column: Column) -> str:
    """Return what a column may hold, beyond its kind."""
    if column.choices:
        return ", ".join(f"`{choice}`" for choice in column.choices)
    least, most = column.bounds
    if column.kind == ColumnType.TEXT and most is not None:
        return f"up to {most} characters" if least is None else f"{least} to {most} characters"
    if column.kind == ColumnType.INTEGER and most is not None and most < 10**18:
        return f"{least} to {most}"
    return ""


def test_tables_of_settings_and_commands_are_those_of_the_declarations() -> None:
    """The operators' page has each setting, command and option in the words of its declaration."""
    page = read("operators.md")

    assert replace_tables(page) == page, "run `python -m tools.tables`, which rewrites the tables"
    assert missing("operators.md", [f"| `{name}` |" for name in SETTINGS]) == []


def test_a_page_without_the_markers_of_a_table_is_refused() -> None:
    """The tool never leaves a table out in silence."""
    with pytest.raises(ValueError, match="table of settings"):
        replace_tables("# A page\n")


def test_every_problem_is_documented() -> None:
    """Each problem is in the API's table with its status and its sentence."""
    rows = [f"| {problem.status} | {problem.message} | " for problem in PROBLEMS.values()]

    assert missing("api.md", rows) == []


def test_every_administrative_column_is_documented() -> None:
    """Each table is there with its sentence, each column with its kind, default and bounds."""
    for table in ADMINISTRATIVE.values():
        head = f"**{table.name}**: {table.description}\n"
        columns = [table.columns[name] for name in table.readable]
        rows = [
            write_row(f"`{each.name}`", each.kind, state_absence(each), state_bounds(each))
            for each in columns
        ]
        body = write_row("column", "kind", "without it", "what it holds") + "|---|---|---|---|\n"

        assert missing("api.md", [f"{head}\n{body}{''.join(rows)}"]) == []


def test_every_scope_and_operator_is_documented() -> None:
    """Each scope and each filter operator is there with its sentence."""
    scopes = [write_row(f"`{scope}`", sentence) for scope, sentence in SCOPES.items()]
    operators = [write_row(f"`{name}`", each.description) for name, each in OPERATORS.items()]

    assert missing("api.md", [*scopes, *operators]) == []


def test_every_tool_is_documented() -> None:
    """Each tool is in the table with its scope, and the listing has their order."""
    tools = bind_tools(OPERATIONS)
    text = read("connect.md")
    rows = re.findall(r"(?m)^\| (`\w+`(?:, `\w+`)*) \| (?:`([\w:]+)`)? ?\|", text)

    listed = {name.strip("`"): scope for names, scope in rows for name in names.split(", ")}
    assert listed == {name: tool.scope or "" for name, tool in tools.items()}
    whole = " ".join(name for name, tool in tools.items() if tool.scope != "admin:read")
    assert f"\n{whole}\n" in text


def test_every_path_and_parameter_is_documented() -> None:
    """Each path of the API is named, and each parameter of a query that is no column."""
    paths = [f"`{ADMIN.sub('/admin/{table}', operation.path)}`" for operation in OPERATIONS]
    queries = [name for each in OPERATIONS if each.query for name in each.query.model_fields]
    others = [
        parameter.name
        for operation in OPERATIONS
        for parameter in operation.parameters
        if parameter.location == "query" and parameter.name != "filters"
    ]

    assert missing("api.md", paths) == []
    assert missing("api.md", [f"`{name}`" for name in {*queries, *others}]) == []


def test_every_front_matter_key_is_documented() -> None:
    """Each key is in the editors' table with its sentence, needed where it is; so are aliases."""
    rows = [
        f"`{name}` |{' needed |' if field.is_required() and name != 'slug' else ' |'}"
        for name, field in PostFrontMatter.model_fields.items()
    ]
    sentences = [f"| {field.description} |" for field in PostFrontMatter.model_fields.values()]
    aliases = [f"`{alias}` is another name" for alias in PELICAN_KEYS]

    assert missing("editors.md", [*rows, *sentences, *aliases]) == []


@pytest.mark.parametrize(
    ("command", "before", "page"),
    [(edge_command, "| `", "operators.md"), (build_command, "python -m site_build ", "editors.md")],
)
def test_every_command_and_option_is_documented(
    command: Command, before: str, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command of both command lines is named, with each part and each option of it."""
    names = commands_in(help_of(command, [], capsys))
    words = [f"{before}{name}" for name in names]
    for name in names:
        said = help_of(command, [name], capsys)
        words += options_in(said)
        for part in commands_in(said):
            words += [f"`{name} {part}", *options_in(help_of(command, [name, part], capsys))]

    assert len(names) > 3
    assert missing(page, words) == []
