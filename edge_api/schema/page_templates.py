"""Templates that a build provides for pages of the edge.

They are plain Jinja2, with autoescape, what `template_language.py` gives, and nothing else. The
build checks each of them, and tries all but those of the reference; the edge gives them exactly
what is named here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

TEMPLATES_FOLDER = "templates"
"""The folder beside the site in a build; its files are not public."""
NOTES_FILE = "notes.json"
"""A file beside them; `read_notes` says what it has."""
CATALOGUE_FILE = "messages.mo"
"""A file beside them, unless all is in English: the sentences in the language of the notes."""
CONTACT_PAGE = "contact/index.html"
"""The built page with the forms."""
BASE_TEMPLATE = "shell.html"
"""A built page without content: the frame of pages that the edge renders."""
SHELL_TITLE, SHELL_CONTENT = "<!-- title -->", "<!-- content -->"
"""Placeholders of the title (any number) and of the content (one)."""
DOCS_BASE_TEMPLATE = "docs_shell.html"
"""A second such frame, for the pages of the API's reference."""
DOCS_PATH, DOCS_DESCRIPTION = "<!-- path -->", "<!-- description -->"
"""Placeholders of the page's path, with a slash at both ends, and of its description."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the contact page, which is shown again with its values where one is invalid.

    Its template is given two mappings by the name of a field: `values`, what was typed, and
    `errors`, a sentence for each invalid field, and under `form` one about the whole.
    """

    template: str
    start_marker: str
    end_marker: str
    """The comments before and after the form in the page."""
    fields: tuple[str, ...]
    """The fields that a person sees."""


MAX_BUDGET_TIER = 50  # characters
CONTACT_FORM = Form(
    "contact_form.html",
    "<!-- contact form -->",
    "<!-- end of contact form -->",
    ("name", "email", "budget_tier", "message", "consent", "rest"),
)
ACCESS_FORM = Form(
    "access_form.html",
    "<!-- access form -->",
    "<!-- end of access form -->",
    ("name", "email", "purpose", "type"),
)
FORMS = (CONTACT_FORM, ACCESS_FORM)

PageName = Literal["consent", "notice", "access_requested", "access_claim", "unsubscribe", "search"]
PAGES: Mapping[PageName, tuple[str, ...]] = {
    "consent": (
        "action",
        "hidden",
        "fault",
        "client_name",
        "client_id",
        "client_kind",
        "redirect_host",
        "is_loopback",
        "resource",
        "scopes",
    ),
    "notice": ("sentences", "link"),
    "access_requested": ("claim_token", "claim_uri", "credential_type", "expires", "action"),
    "access_claim": ("action", "claim_token", "said", "credentials", "site_url"),
    "unsubscribe": ("address", "action"),
    "search": ("words", "results", "page_size"),
}
"""The variables of each page's template, which is the file `<name>.html`."""

DOCS_PAGE, DOCS_TRY = "docs.html", "docs_try.html"
REFERENCE: Mapping[str, tuple[str, ...]] = {
    DOCS_PAGE: ("page", "pages"),
    DOCS_TRY: ("docs", "sheets", "scripts", "document"),
}
"""The templates of the reference by file name, and what each is given.

`docs.html` makes what stands in the frame: `page` is this page and `pages` are all of them, as
`edge_api/operation/reference/pages.py` has them. `docs_try.html` runs `scripts` on the OpenAPI
`document`, in the frame BASE_TEMPLATE; `docs` is where the reference begins.
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """A built page with placeholders that the edge fills in."""

    file: str
    templates: frozenset[str]
    """File names of the templates that are rendered into it."""
    placeholders: tuple[str, ...]
    """Each occurs at least once; SHELL_CONTENT occurs exactly once besides."""


FRAMES = (
    Frame(BASE_TEMPLATE, frozenset({DOCS_TRY, *map("{}.html".format, PAGES)}), (SHELL_TITLE,)),
    Frame(DOCS_BASE_TEMPLATE, frozenset({DOCS_PAGE}), (SHELL_TITLE, DOCS_PATH, DOCS_DESCRIPTION)),
)


def read_notes(build: Path) -> Any:
    """Return the notes that a build has of its templates.

    `ours` are the default theme's, by name: an unknown name is an error in them. `unknown` are
    sentences, one for each unknown name that templates of others show. `lang` is the language of
    the site, `timezone` the name of its time zone.
    Of a build without notes, as versions before 1.0.1 made them, no template is known to be ours.
    """
    try:
        return json.loads((build / TEMPLATES_FOLDER / NOTES_FILE).read_bytes())
    except FileNotFoundError:
        return {"ours": [], "unknown": []}
