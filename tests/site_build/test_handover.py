"""Templates that a build hands to the edge: found as the theme finds them, refused if they fail."""

import json
import shutil
from pathlib import Path

import pytest
from jinja2 import StrictUndefined
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.tables import LeadRow
from edge_api.schema.page_templates import (
    FORMS,
    FRAMES,
    PAGE_VARIABLES,
    REFERENCE_VARIABLES,
    read_notes,
)
from edge_api.schema.template_language import make_environment
from site_build.errors import BuildError
from tests.site_build.workbench import ROOT, THEME, Workbench, run_journal

pytestmark = pytest.mark.size("test")

FORM = "{% set values = values|default({}) %}<form>{{ values.get('name', '') }}</form>"
PLACE = "<!-- contact form -->{% include 'contact_form.html' %}<!-- end of contact form -->"
SHELL = "<html><title><!-- title --></title><h1><!-- title --></h1><!-- content --></html>"
BUDGET_LONGEST = LeadRow.model_json_schema()["properties"]["budget_tier"]["maxLength"]
STATE = "output-cache/output-*/templates/contact_form.html"


@pytest.fixture
def theme(bench: Workbench, tmp_path: Path) -> Path:
    """Return the bare theme with a contact form, for a journal with a contact page."""
    theme = tmp_path / "theme"
    shutil.copytree(THEME, theme)
    write(theme, "contact_form.html", FORM)
    write(theme, "contact.html", "<html>" + PLACE + "</html>")
    page = "---\ntitle: Contact\nslug: contact\ndescription: Write.\n---\n\nWrite to us.\n"
    bench.write("pages/contact.md", page)
    return theme


def write(theme: Path, name: str, source: str) -> None:
    """Write a template of the theme."""
    (theme / "templates" / name).write_text(source, encoding="utf-8")


def handed(folder: Path) -> dict[str, str]:
    """Return what the edge got, by file name."""
    found = folder.glob("output-cache/output-*/templates/*.html")
    return {path.name: path.read_text(encoding="utf-8") for path in found}


def make(bench: Workbench, theme: Path, **settings: object) -> Path:
    """Build with the theme; return the folder above the site and the form."""
    folder = theme.parent
    run_journal(bench.content, folder / "output", theme, **settings)
    return folder


def test_the_edge_gets_the_form(bench: Workbench, theme: Path) -> None:
    """The form's template is handed over as it is written."""
    folder = make(bench, theme)

    assert [path.read_text() for path in folder.glob(STATE)] == [FORM]


def test_a_template_that_goes_before_the_theme_is_handed_over(
    bench: Workbench, theme: Path
) -> None:
    """The form that the page shows is the form that the edge gets, overridden or not."""
    overrides = theme.parent / "overrides"
    overrides.mkdir()
    (overrides / "contact_form.html").write_text("<form>Another</form>")

    folder = make(bench, theme, THEME_TEMPLATES_OVERRIDES=[str(overrides)])

    assert "Another" in (folder / "output" / "contact" / "index.html").read_text()
    assert [path.read_text() for path in folder.glob(STATE)] == ["<form>Another</form>"]


def test_a_static_file_is_named_by_its_address(bench: Workbench, theme: Path) -> None:
    """The edge gets the file's path in this build, and need not know its content."""
    (theme / "static" / "form.js").write_text("void 0;", encoding="utf-8")
    write(theme, "contact_form.html", """<script src="{{ asset('form.js') }}"></script>""")
    folder = make(bench, theme)
    (published,) = (folder / "output" / "theme").glob("form.*.js")

    (form,) = (path.read_text(encoding="utf-8") for path in folder.glob(STATE))
    assert form == f'<script src="/theme/{published.name}"></script>'


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{{ asset('style' ~ '.css') }}", r"contact_form\.html:1: 'asset' is undefined; the edge"),
        (
            "<img src='{{ asset('gone.svg') }}'>",
            r"asset\('gone.svg'\), which is not in theme/static",
        ),
        ("{% import 'base.html' as base %}", r"takes in another template"),
        (
            "{% if false %}{% include ['gone.html'] ignore missing %}{% endif %}",
            r"takes in another",
        ),
        ("Words.\n{{ 'May'|strftime('%d') }}", r"contact_form\.html:2: No filter named 'strftime'"),
        ("Words.\n{% if errors %}{{ errors['email'] + 1 }}{% endif %}", r"contact_form\.html:2: "),
        (
            "{% if values and values['name'] %}{{ 1 / 0 }}{% endif %}",
            r"contact_form\.html:1: divis",
        ),
    ],
)
def test_a_form_that_the_edge_cannot_show_stops_the_build(
    bench: Workbench, theme: Path, source: str, sentence: str
) -> None:
    """A form that would fail on a visitor's mistake is reported before a page is made."""
    write(theme, "contact_form.html", source)

    with pytest.raises(BuildError, match=sentence) as refusal:
        make(bench, theme)

    assert "\n" not in str(refusal.value)
    assert not (theme.parent / "output").exists()


def test_a_form_in_another_encoding_stops_the_build(bench: Workbench, theme: Path) -> None:
    """A template that is not UTF-8 is reported in a sentence."""
    (theme / "templates" / "contact_form.html").write_bytes(b"<form>\xe9</form>")

    with pytest.raises(BuildError, match="is not UTF-8"):
        make(bench, theme)


@pytest.mark.parametrize(
    "page",
    [
        "{% include 'contact_form.html' %}",
        "<!-- contact form -->{% include 'contact_form.html' %}",
        "<!-- end of contact form -->{% include 'contact_form.html' %}<!-- contact form -->",
    ],
)
def test_a_contact_page_without_a_place_for_the_form_stops_the_build(
    bench: Workbench, theme: Path, page: str
) -> None:
    """Without its marks in order the edge could only put the form behind the page."""
    write(theme, "contact.html", page)

    with pytest.raises(BuildError, match=r"/contact/index\.html has no place for the form"):
        make(bench, theme)


def test_a_site_without_a_contact_page_needs_no_place_for_the_form(
    bench: Workbench, theme: Path
) -> None:
    """A theme with a form builds a journal that has no contact page."""
    (bench.content / "pages" / "contact.md").unlink()

    assert (make(bench, theme) / "output" / "index.html").is_file()


def test_a_theme_without_a_form_builds(bench: Workbench, theme: Path) -> None:
    """A contact page need not have a form."""
    (theme / "templates" / "contact_form.html").unlink()
    write(theme, "contact.html", "Write a letter.")

    assert not list(make(bench, theme).glob(STATE))


@pytest.mark.parametrize("name", ["contact", "access"])
def test_each_form_needs_its_own_place(bench: Workbench, theme: Path, name: str) -> None:
    """A theme with both forms needs both places, each with its own marks."""
    write(theme, "access_form.html", FORM)
    others = {"contact": "access", "access": "contact"}
    marks = f"<!-- {others[name]} form --><!-- end of {others[name]} form -->"
    write(theme, "contact.html", f"<html>{marks}</html>")

    with pytest.raises(BuildError, match=f"put <!-- {name} form --> before"):
        make(bench, theme, ACCESS_REQUESTS="on")


def test_the_edge_gets_pages_and_their_shell(bench: Workbench, theme: Path) -> None:
    """Templates are handed over as they are written, the shell as it was built."""
    notice = "{% for each in sentences %}<p>{{ each }}</p>{% endfor %}"
    shell = "{% extends 'base.html' %}{% block main %}" + SHELL + "{% endblock %}"
    write(theme, "notice.html", notice)
    write(theme, "shell.html", shell)

    got = handed(make(bench, theme))

    assert got["notice.html"] == notice
    assert got["consent.html"] == handed(make(bench, theme))["consent.html"] != ""
    assert SHELL in got["shell.html"]
    assert "/theme/style." in got["shell.html"]
    assert "https://journal.test/shell.html" in got["shell.html"]


def test_the_shell_is_not_published(bench: Workbench, theme: Path) -> None:
    """Templates of the edge are no part of the site."""
    write(theme, "notice.html", "Words.")
    write(theme, "shell.html", SHELL)
    folder = make(bench, theme)

    names = {path.name for path in (folder / "output").rglob("*") if path.is_file()}
    assert not {name for name in names if name.startswith(("shell", "notice"))}


@pytest.mark.parametrize(
    ("shell", "sentence"),
    [
        ("<title>None</title><!-- content -->", r"shell\.html has no place"),
        ("<title><!-- title --></title>", r"shell\.html has no place"),
        (SHELL + "<!-- content -->", r"shell\.html has no place"),
        ("{{ 1 / 0 }}", r"shell\.html:1: division by zero"),
        ("{% if %}", r"shell\.html:1: "),
    ],
)
def test_a_shell_that_holds_nothing_stops_the_build(
    bench: Workbench, theme: Path, shell: str, sentence: str
) -> None:
    """Pages need a frame with a place for title and content, before any page is written."""
    write(theme, "notice.html", "Words.")
    write(theme, "shell.html", shell)

    with pytest.raises(BuildError, match=sentence):
        make(bench, theme)

    assert not (theme.parent / "output" / "index.html").exists()


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("consent", "{{ scopes[0].name.x() }}", r"consent\.html:1: "),
        ("consent", "{% if fault %}{{ fault / 2 }}{% endif %}", r"consent\.html:1: "),
        ("notice", "{% if link %}{{ link.x + 1 }}{% endif %}", r"notice\.html:1: "),
        ("access_requested", "{% include 'base.html' %}", "takes in another template"),
        ("docs", "{{ asset('gone.css') }}", r"asset\('gone.css'\), which is not in theme/static/"),
        ("docs_try", "{% include 'base.html' %}", "takes in another template"),
    ],
)
def test_a_page_that_the_edge_cannot_show_stops_the_build(
    bench: Workbench, theme: Path, name: str, source: str, sentence: str
) -> None:
    """Each page is tried with what the edge gives it, before the site is made."""
    write(theme, f"{name}.html", source)
    write(theme, "shell.html", SHELL)

    with pytest.raises(BuildError, match=sentence):
        make(bench, theme)

    assert not (theme.parent / "output").exists()


@pytest.mark.parametrize(
    ("name", "source", "unknown"),
    [
        ("contact_form", "a\n{{ SITENAME }}", [":2: 'SITENAME' is undefined"]),
        ("contact_form", "{% if SITEURL is defined %}x{% endif %}", [":1: 'SITEURL' is undefined"]),
        ("consent", "{{ scopes[0].name.x.y }}", [":1: 'str object' has no attribute 'x'"]),
        ("docs", "{{ page }}\n\n{{ entries }}", [":3: 'entries' is undefined"]),
        ("notice", "{% if link and link.odd %}{{ link.odd|default('') }}{% endif %}", []),
    ],
)
def test_a_name_that_the_edge_does_not_give_is_noted(
    bench: Workbench, theme: Path, name: str, source: str, unknown: list[str]
) -> None:
    """Another theme's template is handed over with a note of its line, and shows nothing there."""
    write(theme, f"{name}.html", source)
    write(theme, "shell.html", SHELL)
    write(theme, "docs_shell.html", f"{SHELL}<!-- path --><!-- description -->")

    folder = make(bench, theme)

    assert handed(folder)[f"{name}.html"] == source
    notes = read_notes(next(folder.glob("output-cache/output-*")))
    assert notes["unknown"] == [f"{theme}/templates/{name}.html{each}" for each in unknown]
    assert f"{name}.html" not in notes["ours"]


@pytest.mark.parametrize("lost", ["<!-- path -->", "<!-- description -->", "<!-- content -->"])
def test_the_reference_needs_a_frame_of_its_own(bench: Workbench, theme: Path, lost: str) -> None:
    """Its frame has a place for all that the edge puts in, or the build stops."""
    frame = f'{SHELL}<link rel="canonical" href="<!-- path -->"><p><!-- description --></p>'
    write(theme, "docs.html", "{{ page.title }}")
    write(theme, "docs_shell.html", frame)
    assert handed(make(bench, theme))["docs_shell.html"] == frame

    write(theme, "docs_shell.html", frame.replace(lost, ""))
    with pytest.raises(BuildError, match=r"docs_shell\.html has no place"):
        make(bench, theme)


def test_another_page_of_the_edge_is_another_build(bench: Workbench, theme: Path) -> None:
    """Templates of the edge count for a build's name, though no file of the site differs."""
    write(theme, "shell.html", SHELL)
    names = set()
    for words in ("One.", "Two.", "Two."):
        write(theme, "notice.html", words)
        index = next(make(bench, theme).glob("output-cache/output-*/posts.json"))
        names.add(json.loads(index.read_bytes())["head"]["build_id"])

    assert len(names) == 2


def test_the_journals_own_templates_are_handed_over(bench: Workbench, tmp_path: Path) -> None:
    """The theme has all that the edge knows; it reaches it byte for byte, but for addresses."""
    run_journal(bench.content, tmp_path / "output", ROOT / "theme", ACCESS_REQUESTS="on")

    got = handed(tmp_path)
    written = {name: (ROOT / "theme/templates" / name).read_text(encoding="utf-8") for name in got}
    frames = {frame.file for frame in FRAMES}
    forms = {form.template for form in FORMS}
    assert got.keys() == {*frames, *forms, *map(file_of, PAGE_VARIABLES), *REFERENCE_VARIABLES}
    named = {name for name in got if "asset(" in written[name]}
    assert {name for name in got if got[name] != written[name]} == {*frames, *named}


def file_of(page: str) -> str:
    """Return the file of a page's template."""
    return f"{page}.html"


TIERS = ["Not decided yet", "Up to 5,000 €", 'it\'s "%}" {{ 7*7 }} \\ #}']


def test_the_edge_offers_the_budgets_of_the_site(bench: Workbench, tmp_path: Path) -> None:
    """BUDGET_TIERS are in the built contact page and in the form that the edge renders again."""
    bench.write("pages/contact.md", "---\ntitle: Contact\nslug: contact\n---\n\nWrite.\n")
    run_journal(bench.content, tmp_path / "output", ROOT / "theme", BUDGET_TIERS=TIERS)
    page = (tmp_path / "output" / "contact" / "index.html").read_text(encoding="utf-8")
    strict = make_environment(None, StrictUndefined)
    given: dict[str, object] = {"values": {}, "errors": {}}
    again = strict.from_string(handed(tmp_path)["contact_form.html"]).render(given)

    for html in (page, again):
        select = LexborHTMLParser(html).css_first("select[name=budget_tier]")
        assert select is not None
        assert [option.text() for option in select.css("option")][1:] == TIERS


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_closed_form_is_not_shown(bench: Workbench, tmp_path: Path, *, is_closed: bool) -> None:
    """If leads need a credential, the contact page says so in place of its form."""
    bench.write("pages/contact.md", "---\ntitle: Contact\nslug: contact\n---\n\nWrite.\n")
    closed = str(is_closed).lower()
    run_journal(bench.content, tmp_path / "output", ROOT / "theme", LEADS_REQUIRE_CREDENTIAL=closed)
    page = (tmp_path / "output" / "contact" / "index.html").read_text(encoding="utf-8")

    assert ("This form is closed" in page) is is_closed
    assert ('id="contact-form"' in page) is not is_closed


@pytest.mark.parametrize("access", ["on", "off", None])
@pytest.mark.parametrize("closed", ["true", "false"])
def test_the_form_for_access_is_there_on_request_alone(
    bench: Workbench, tmp_path: Path, access: str | None, closed: str
) -> None:
    """Without the setting neither the page nor the edge has it, and nothing leads to it."""
    bench.write("pages/contact.md", "---\ntitle: Contact\nslug: contact\n---\n\nWrite.\n")
    given = {"LEADS_REQUIRE_CREDENTIAL": closed, **({"ACCESS_REQUESTS": access} if access else {})}
    run_journal(bench.content, tmp_path / "output", ROOT / "theme", **given)
    page = (tmp_path / "output" / "contact" / "index.html").read_text(encoding="utf-8")
    auth = (tmp_path / "output" / "auth.md").read_text(encoding="utf-8")
    has_form = access == "on"

    assert ('id="access-form"' in page) is has_form
    assert ('id="access"' in page) is has_form
    assert ("access_form.html" in handed(tmp_path)) is has_form
    assert ("/contact/#access" in auth) is has_form
    assert ("You can ask for one below." in page) is (has_form and closed == "true")
    assert ('<a href="/auth.md">auth.md</a> says how' in page) is (
        not has_form and closed == "true"
    )
    assert ("api" in page.partition("<main")[2].partition("</main")[0].lower()) is (
        has_form or closed == "true"
    )


@pytest.mark.parametrize(
    "tiers", ["Up to 5,000", [""], [" x"], ["x" * (BUDGET_LONGEST + 1)], [5], ["a\nb"], ["a", "a"]]
)
def test_budgets_that_cannot_be_meant_stop_the_build(
    bench: Workbench, theme: Path, tiers: object
) -> None:
    """The error has the setting's name, and comes before a page is made."""
    with pytest.raises(BuildError, match="BUDGET_TIERS has to be a list of different texts"):
        make(bench, theme, BUDGET_TIERS=tiers)

    assert not (theme.parent / "output").exists()
