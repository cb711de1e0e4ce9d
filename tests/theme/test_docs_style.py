"""The style sheet of the reference: small, of this site alone, and of use."""

import re
from pathlib import Path

import brotli
import jinja2
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
REFERENCE = ROOT / "edge_api" / "operation" / "reference"
BUDGET = 5 * 1024
"""Bytes, as brotli."""
MADE_ELSEWHERE = {"get", "post", "patch", "delete", "highlight"}
"""Classes of methods, which are values, and of what the edge makes of Markdown."""


OF_OTHER_THEMES = {"body"}
"""The selector around what the frame lends to a theme of Pelican's."""


@pytest.fixture(scope="module")
def sheet() -> str:
    """Return the rules of the sheet."""
    text = (ROOT / "theme" / "static" / "docs.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def classes_in(templates: jinja2.Environment) -> set[str]:
    """Return every class that a template of the reference names, of the theme and the edge."""
    assert templates.loader
    names = [name for name in templates.list_templates() if name.startswith("docs")]
    texts = [templates.loader.get_source(templates, name)[0] for name in names]
    texts += [path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md")]
    values = [value for text in texts for value in re.findall(r'class="([^"]*)"', text)]
    return {name for value in values for name in re.sub(r"\{\{.*?\}\}", "", value).split()}


def classes_of(rules: str) -> set[str]:
    """Return every class that a selector names."""
    return {
        name
        for selector in re.findall(r"([^{}]+)\{", rules)
        if not selector.strip().startswith("@")
        for name in re.findall(r"\.([a-z][\w-]*)", selector)
    }


def test_the_sheet_is_small_and_asks_nobody(sheet: str) -> None:
    """It stays within its budget, loads nothing and has no directions but logical ones."""
    assert len(brotli.compress(sheet.encode(), quality=5)) <= BUDGET
    assert re.findall(r"url\(|@import|https?:", sheet) == []
    assert (
        re.findall(r"(?:margin|padding|border)-(?:left|right)\b|[\s;{](?:left|right):", sheet) == []
    )
    assert sheet.count("{") == sheet.count("}")


def test_every_class_of_the_reference_is_styled(
    sheet: str, style: str, templates: jinja2.Environment
) -> None:
    """A class of its templates has a rule in one of two sheets, and none of its own is idle."""
    used = classes_in(templates)

    assert used - classes_of(sheet) - classes_of(style) == OF_OTHER_THEMES
    assert classes_of(sheet) - used - MADE_ELSEWHERE == set()


def test_every_colour_is_the_sites(sheet: str, style: str) -> None:
    """It names no colour itself, so that both schemes are those of the site."""
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgb|hsl|oklch", sheet) == []
    asked = set(re.findall(r"var\((--[\w-]+)", sheet))

    assert {name for name in asked if f"{name}:" not in style} == set()
