"""Names that templates ask for and nobody gives: a fault in ours, noted in those of others."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from edge_api.schema.page_templates import read_notes
from site_build.addresses import DEFAULT_ADDRESSES
from site_build.build import edge_templates
from site_build.errors import BuildError
from tests.site_build.workbench import ROOT, run

pytestmark = pytest.mark.size("test")

ARTICLE = """{% extends "base.html" %}
{% block content %}
{% if NEVER_SET %}<p>Never</p>{% endif %}{{ NOT_GIVEN|default("A default") }}
<p>{{ article.title }}: {{ COLOUR }}.</p>
{% for each in article.readers %}{{ each }}{% endfor %}
{{ article.readers.first.name }}
{% endblock %}
"""
NOTICE = "<p>Words.</p>\n{{ SITENAME }}\n{% for each in sentences %}<p>{{ each }}</p>{% endfor %}"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return the folder of a journal with a post, in the default theme."""
    (tmp_path / "pelicanconf.py").write_text(
        'from site_build.default_settings import *\nSITENAME = "A journal"\n'
    )
    (tmp_path / "content" / "posts").mkdir(parents=True)
    post = "---\ntitle: A post\nslug: a-post\ndate: 2026-03-01\ndescription: One.\n---\n\nWords.\n"
    (tmp_path / "content" / "posts" / "a.md").write_text(post)
    return tmp_path


def command(journal: Path, *words: str) -> tuple[int, str]:
    """Run a command of the build in the journal; return its status, and what it said."""
    module = "edge_api" if words[0] in {"doctor", "migrate"} else "site_build"
    settings = {
        "PELICAN_SETTINGS": str(journal / "pelicanconf.py"),
        "CONTENT_DIR": str(journal / "content"),
        "BUILD_DIR": str(journal / "build"),
        "DATABASE_URL": f"sqlite:///{journal}/edge.db",
    }
    if (journal / "mail").exists():
        settings["MAIL_TEMPLATES"] = str(journal / "mail")
    done = run(sys.executable, "-m", module, *words, environment=settings)
    return done.returncode, done.stdout + done.stderr


def override(journal: Path, name: str, text: str) -> None:
    """Write a template of the journal's own, which goes before that of the theme."""
    folder = journal / "theme" / "templates"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_our_templates_use_no_unknown_names(journal: Path) -> None:
    """A journal in the default theme is built by templates that are all strict."""
    assert command(journal, "check") == (0, "0 errors, 0 warnings in 1 file\n")
    status, said = command(journal, "build")
    notes = read_notes(journal / "build" / "current")

    assert status == 0, said
    assert "undefined" not in said
    assert {"docs.html", "docs_try.html", "notice.html", "contact_form.html"} <= set(notes["ours"])
    assert notes["unknown"] == []


def test_an_unknown_name_in_a_journals_template_is_reported_and_the_page_shown(
    journal: Path,
) -> None:
    """`check`, `build` and `doctor` say file and line; what is only asked about is no fault."""
    override(journal, "article.html", ARTICLE)
    override(journal, "notice.html", NOTICE)
    (journal / "mail").mkdir()
    (journal / "mail" / "lead_notification.txt").write_text("Hello\n{{ nme }}\n")
    place = journal / "theme" / "templates"
    wanted = [
        f"{place}/article.html:4:1  warning  'COLOUR' is undefined",
        f"{place}/article.html:6:1  warning  ",
        f"{place}/notice.html:2:1  warning  'SITENAME' is undefined",
    ]

    for words in ("check", "build"):
        status, said = command(journal, words)
        lines = sorted(said.splitlines())
        found = [line for line in lines if "undefined" in line or "no attribute" in line]
        assert status == 0, said
        assert [line[: len(start)] for line, start in zip(found, wanted, strict=True)] == wanted
    assert command(journal, "check", "--strict")[0] == 1
    page = (journal / "build/current/site/journal/a-post/index.html").read_text()
    assert "<p>A post: .</p>" in page
    assert "A default" in page

    notes = read_notes(journal / "build" / "current")
    assert "notice.html" not in notes["ours"]
    assert "docs.html" in notes["ours"]
    assert command(journal, "migrate")[0] == 0
    said = command(journal, "doctor")[1]
    assert f"{place}/article.html:4: 'COLOUR' is undefined" in said
    assert f"{place}/notice.html:2: 'SITENAME' is undefined" in said
    assert "MAIL_TEMPLATES: lead_notification.txt:2: 'nme' is undefined" in said


def test_a_second_build_reports_it_again_until_it_is_fixed(journal: Path) -> None:
    """Unchanged pages are not made anew, and what they lack is reported all the same."""
    override(journal, "article.html", ARTICLE)
    assert "'COLOUR' is undefined" in command(journal, "build")[1]
    assert "'COLOUR' is undefined" in command(journal, "build")[1]

    override(journal, "article.html", '{% extends "base.html" %}')
    assert "undefined" not in command(journal, "build")[1]
    assert read_notes(journal / "build" / "current")["unknown"] == []


def test_a_template_that_fails_is_named_by_check(journal: Path) -> None:
    """An error that would stop a build is reported by `check` already."""
    override(journal, "article.html", '{% extends "base.html" %}\n{% block content %}{{ 1 / 0 }}')

    status, said = command(journal, "check")

    assert status == 2
    assert "article.html:" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("theme", ["simple", "notmyidea"])
def test_pelicans_themes_ask_whether_names_are_given(journal: Path, theme: str) -> None:
    """They use settings that a site may leave out, and loop over them: nothing is reported."""
    settings = journal / "pelicanconf.py"
    settings.write_text(f'SITENAME = "A journal"\nTHEME = "{theme}"\nPLUGINS = []\n')

    status, said = command(journal, "check", "--strict")

    assert status == 0, said
    status, said = command(journal, "build")
    assert (status, re.findall("undefined", said)) == (0, [])


def test_a_name_that_nobody_gives_is_a_defect_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build stops at our own template, though the page could be shown with a gap."""
    house = tmp_path / "house"
    shutil.copytree(ROOT / "theme", house)
    monkeypatch.setattr(edge_templates, "HOUSE_THEME", house)
    folders = [house / "templates"]

    def find() -> edge_templates.EdgeTemplates:
        return edge_templates.find_edge_templates(
            folders, lambda name: f"/theme/{name}", (), DEFAULT_ADDRESSES
        )

    assert len(find().default_names) == len(find().sources)
    for source, fault in (("\n{{ nobody }}", "2: 'nobody'"), ("{{ link.x.y.z }}", "1: ")):
        (house / "templates" / "notice.html").write_text(source)
        with pytest.raises(BuildError, match=rf"notice\.html:{fault}"):
            find()
