"""The contact form in a build: found as the theme finds it, refused where the edge would fail."""

import shutil
from pathlib import Path

import pytest

from site_build.faults import BuildError
from tests.site_build.workbench import ROOT, THEME, Desk, run_journal

FORM = "{% set values = values|default({}) %}<form>{{ values.get('name', '') }}</form>"
PLACE = "<!-- contact form -->{% include 'contact_form.html' %}<!-- end of contact form -->"
STATE = "output-cache/output-*/contact_form.html"


@pytest.fixture
def theme(desk: Desk, tmp_path: Path) -> Path:
    """Return the bare theme with a contact form, for a journal with a contact page."""
    theme = tmp_path / "theme"
    shutil.copytree(THEME, theme)
    write(theme, "contact_form.html", FORM)
    write(theme, "contact.html", "<html>" + PLACE + "</html>")
    page = "---\ntitle: Contact\nslug: contact\ndescription: Write.\n---\n\nWrite to us.\n"
    desk.write("pages/contact.md", page)
    return theme


def write(theme: Path, name: str, source: str) -> None:
    """Write a template of the theme."""
    (theme / "templates" / name).write_text(source, encoding="utf-8")


def make(desk: Desk, theme: Path, **settings: object) -> Path:
    """Build with the theme; return the folder above the site and the form."""
    folder = theme.parent
    run_journal(desk.content, folder / "output", theme, **settings)
    return folder


def test_the_edge_gets_the_form(desk: Desk, theme: Path) -> None:
    """The form's template is handed over as it is written."""
    folder = make(desk, theme)

    assert [path.read_text() for path in folder.glob(STATE)] == [FORM]


def test_a_template_that_goes_before_the_theme_is_handed_over(desk: Desk, theme: Path) -> None:
    """The form that the page shows is the form that the edge gets, overridden or not."""
    overrides = theme.parent / "overrides"
    overrides.mkdir()
    (overrides / "contact_form.html").write_text("<form>Another</form>")

    folder = make(desk, theme, THEME_TEMPLATES_OVERRIDES=[str(overrides)])

    assert "Another" in (folder / "output" / "contact" / "index.html").read_text()
    assert [path.read_text() for path in folder.glob(STATE)] == ["<form>Another</form>"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("<img src='{{ asset('style.css') }}'>", r"asks for asset, but the edge gives it nothing"),
        ("{{ SITENAME }}", r"asks for SITENAME, but"),
        ("{% if faults is defined and faults.odd %}{{ SITEURL }}{% endif %}", r"asks for SITEURL"),
        ("{% import 'base.html' as base %}", r"takes in another template"),
        (
            "{% if false %}{% include ['gone.html'] ignore missing %}{% endif %}",
            r"takes in another",
        ),
        ("Words.\n{{ 'May'|strftime('%d') }}", r"contact_form\.html:2: No filter named 'strftime'"),
        ("Words.\n{% if faults %}{{ faults['email'].x.y }}{% endif %}", r"contact_form\.html:2: "),
        (
            "{% if values and values['name'] %}{{ 1 / 0 }}{% endif %}",
            r"contact_form\.html:1: divis",
        ),
    ],
)
def test_a_form_that_the_edge_cannot_show_stops_the_build(
    desk: Desk, theme: Path, source: str, sentence: str
) -> None:
    """What would fail for whoever mistypes is told to the theme's author, before a page is made."""
    write(theme, "contact_form.html", source)

    with pytest.raises(BuildError, match=sentence) as refusal:
        make(desk, theme)

    assert "\n" not in str(refusal.value)
    assert not (theme.parent / "output").exists()


def test_a_form_in_another_encoding_stops_the_build(desk: Desk, theme: Path) -> None:
    """A template that is not UTF-8 is told in a sentence."""
    (theme / "templates" / "contact_form.html").write_bytes(b"<form>\xe9</form>")

    with pytest.raises(BuildError, match="is not UTF-8"):
        make(desk, theme)


@pytest.mark.parametrize(
    "page",
    [
        "{% include 'contact_form.html' %}",
        "<!-- contact form -->{% include 'contact_form.html' %}",
        "<!-- end of contact form -->{% include 'contact_form.html' %}<!-- contact form -->",
    ],
)
def test_a_contact_page_without_a_place_for_the_form_stops_the_build(
    desk: Desk, theme: Path, page: str
) -> None:
    """Without its marks in order the edge could only put the form behind the page."""
    write(theme, "contact.html", page)

    with pytest.raises(BuildError, match=r"/contact/index\.html has no place for the form"):
        make(desk, theme)


def test_a_site_without_a_contact_page_needs_no_place_for_the_form(desk: Desk, theme: Path) -> None:
    """A theme with a form builds a journal that has no contact page."""
    (desk.content / "pages" / "contact.md").unlink()

    assert (make(desk, theme) / "output" / "index.html").is_file()


def test_a_theme_without_a_form_builds(desk: Desk, theme: Path) -> None:
    """A contact page need not have a form."""
    (theme / "templates" / "contact_form.html").unlink()
    write(theme, "contact.html", "Write a letter.")

    assert not list(make(desk, theme).glob(STATE))


def test_the_journals_own_form_is_one_that_the_edge_can_show(desk: Desk, tmp_path: Path) -> None:
    """The theme's own form passes and reaches the edge byte for byte."""
    run_journal(desk.content, tmp_path / "output", ROOT / "theme")

    handed = [path.read_bytes() for path in tmp_path.glob(STATE)]
    assert handed == [(ROOT / "theme" / "templates" / "contact_form.html").read_bytes()]
