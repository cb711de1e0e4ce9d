"""Settings of Pelican sites that are more than plain assignments, and what they do to texts."""

import time
from pathlib import Path

from site_build.importers.pelican import read_pelican

SETTINGS = """
import os
SITENAME = 'Notes'
SITEURL = os.environ.get('SITEURL', 'https://a.example/blog')
SITEDESCRIPTION = 'On paper'
PAGE_PATHS = ['pages']
PAGE_PATHS += ['more']
DEFAULT_DATE = 'fs'
if os.environ.get('LIVE'):
    TIMEZONE = 'Europe/Berlin'
    SITENAME = 'Live notes'
else:
    TIMEZONE = 'UTC'
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """Write a site."""
    for name, text in {"pelicanconf.py": SETTINGS, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_settings_that_are_added_to_or_under_a_condition(tmp_path: Path) -> None:
    """`+=` and the first value under a condition are read; a second value is named."""
    imported = read_pelican(write(tmp_path, {"content/more/a.md": "Title: A\n\nWords\n"}))

    assert [(text.kind, text.address) for text in imported.texts] == [
        ("page", "/pages/a.html"),
    ]
    assert (imported.title, imported.timezone) == ("Notes", "Europe/Berlin")
    assert (imported.origin, imported.description) == ("https://a.example", "On paper")
    assert {each.line: each.what for each in imported.findings} == {
        11: "a second value of SITENAME, under a condition, was not read",
        13: "a second value of TIMEZONE, under a condition, was not read",
    }


def test_a_site_below_a_path(tmp_path: Path) -> None:
    """A text answers with and without the path of the site, and its links begin at the root."""
    words = "![b]({{ SITEURL }}/b.png) {{ SITENAME }} {{ OTHER }}\n\n    {{ SITEURL }}\n"
    files = {"content/a.md": f"Title: A\nDate: 2020-01-02\n\n{words}"}
    files["pelicanconf.py"] = f"{SETTINGS}PLUGINS = ['jinja2content']\n"
    (text,) = read_pelican(write(tmp_path, files)).texts

    assert (text.address, text.aliases) == ("/a.html", ["/blog/a.html"])
    assert text.body.strip() == "![b](/b.png) Notes {{ OTHER }}\n\n    {{ SITEURL }}"
    assert text.updated is None  # the day of the file says nothing


def test_settings_and_fields_without_a_value(tmp_path: Path) -> None:
    """Empty values, or those of another type than Pelican's, are ignored."""
    files = {
        "pelicanconf.py": "SITENAME = 'A'\nPATH = 'content'\nMENUITEMS = 5\n",
        "content/a.rst": "A\n=\n\n:date: 2020-01-02\n:tags:\n:modified:\n\nWords\n",
        "content/b.md": "Title: B\nDate: 2020-01-02\nTags: ,\nModified:\n\nWords\n",
    }
    imported = read_pelican(write(tmp_path, files))

    assert [(text.title, text.tags, text.updated) for text in imported.texts] == [
        ("A", [], None),
        ("B", [], None),
    ]
    assert imported.menu == []


def test_tags_that_never_end(tmp_path: Path) -> None:
    """Many tags that are never closed do not keep the importer: each is looked for so far."""
    files = {"content/a.md": "Title: A\nDate: 2020-01-02\n\n" + "{% a " * 20_000}
    begin = time.process_time()

    assert len(read_pelican(write(tmp_path, files)).texts) == 1
    assert time.process_time() - begin < 20
