"""Judges run as their makers have them run: what differs is in README.md, with its reason."""

import ast
import re
from pathlib import Path

import pytest

from tests.judges.node import CONFORMANCE, FOLDER
from tools.judges import MODULES

README = FOLDER / "README.md"
_REPLACES = re.compile(r"^\s*(?:globalThis|fs|console|performance|Date)\.\w+ = ", re.MULTILINE)
"""The replacement of what belongs to the platform, for a program that runs on it."""


def own_programs() -> dict[str, str]:
    """Return the text of each program of ours that runs or configures a judge, by its path."""
    found = (
        file
        for pattern in ("*.mjs", "*.ts", "pages/*.mjs", "expected/*.yml", "fixtures/server.py")
        for file in FOLDER.glob(pattern)
    )
    return {str(file.relative_to(FOLDER)): file.read_text(encoding="utf-8") for file in found}


def test_the_official_suite_is_run_itself() -> None:
    """The program that is started is a file of the suite's own package."""
    assert CONFORMANCE.is_relative_to(MODULES / "@modelcontextprotocol" / "conformance")


def test_only_what_the_readme_says_is_replaced_for_a_judge() -> None:
    """One program replaces a function of Node.js, and the README has a row for that."""
    replacing = [name for name, text in own_programs().items() if _REPLACES.search(text)]

    assert replacing == ["pages/observatory.mjs"]
    assert "browsers open over https alone reads as empty" in README.read_text(encoding="utf-8")


def test_the_readme_names_each_program_of_ours() -> None:
    """It names each script and each file of expected failures, and no file that is gone."""
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+\.(?:mjs|ts|yml|py|json))`", text))

    assert set(own_programs()) - named == set()
    assert {name for name in named if not (FOLDER / name).exists()} == set()


def test_each_row_of_the_readme_gives_a_reason() -> None:
    """A row names the judge, what differs and why: no cell is empty."""
    rows = re.findall(r"^\| (.*) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]

    assert len(rows) > 10
    assert [row for row in cells if len(row) != 3 or not all(map(str.strip, row))] == []


def test_tests_of_the_official_suite_run_alone() -> None:
    """Each test that starts it has the mark, since the suite gives up on answers by its clock."""
    without: list[str] = []
    found = 0
    for path in FOLDER.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        marks = [ast.unparse(each) for each in tree.body if isinstance(each, ast.Assign)]
        for test in tree.body:
            if not isinstance(test, ast.AsyncFunctionDef) or not test.name.startswith("test_"):
                continue
            names = {each.id for each in ast.walk(test) if isinstance(each, ast.Name)}
            if not names & {"CONFORMANCE", "judge_server"}:
                continue
            found += 1
            said = " ".join([*marks, *map(ast.unparse, test.decorator_list)])
            if "pytest.mark.alone" not in said:
                without.append(test.name)

    assert found >= 4
    assert without == []


@pytest.mark.parametrize(
    "path", sorted((FOLDER / "expected").iterdir()), ids=lambda path: path.stem
)
def test_every_expected_failure_has_a_reason(path: Path) -> None:
    """In a file of expected failures a comment is above each entry."""
    lines = path.read_text(encoding="utf-8").partition("server:\n")[2].splitlines()

    assert lines
    assert [line.split()[0] for line in lines[0::2]] == ["#"] * (len(lines) // 2)
    assert [line.split()[0] for line in lines[1::2]] == ["-"] * (len(lines) // 2)
