"""Templates that a build provides for pages of the edge.

They are plain Jinja2 with autoescape and the functions and filters of `template_language.py`, and
nothing else. The build checks each of them, and renders all but those of the API reference with
samples; the edge gives them exactly the variables named here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

TEMPLATES_FOLDER = "templates"
"""The folder beside the site in a build; its files are not public."""
NOTES_FILE = "notes.json"
"""A file beside the templates, with the notes that `read_notes` describes."""
CATALOGUE_FILE = "messages.mo"
"""A file beside the templates: the translated sentences; absent if the site is in English."""
CONTACT_PAGE = "contact/index.html"
"""The built page with the forms."""
BASE_TEMPLATE = "shell.html"
"""A built page without content: the frame of pages that the edge renders."""
TITLE_PLACEHOLDER, CONTENT_PLACEHOLDER = "<!-- title -->", "<!-- content -->"
"""Placeholders of the title (any number) and of the content (one)."""
DOCS_BASE_TEMPLATE = "docs_shell.html"
"""A second built page without content: the frame of pages of the API's reference."""
PATH_PLACEHOLDER, DESCRIPTION_PLACEHOLDER = "<!-- path -->", "<!-- description -->"
"""Placeholders of the page's path, with a slash at both ends, and of its description."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the contact page, which is shown again with its values if one of them is invalid.

    Its template gets two mappings by field name: `values` has the texts that were typed, and
    `errors` a sentence for each invalid field, and under `form` one about the whole form.
    """

    template: str
    start_marker: str
    end_marker: str
    """The comments before and after the form in the page."""
    fields: tuple[str, ...]
    """The fields that a person sees."""


MAX_BUDGET_TIER_LENGTH = 50  # characters
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

PageName = Literal[
    "consent",
    "notice",
    "access_requested",
    "access_claim",
    "unsubscribe",
    "subscribe",
    "subscription",
    "search",
]
PAGE_VARIABLES: Mapping[PageName, tuple[str, ...]] = {
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
    "subscribe": ("action", "email", "fault"),
    "subscription": ("sentences", "buttons"),
    "search": ("words", "results", "page_size"),
}
"""The variables of each page's template, which is the file `<name>.html`."""

DOCS_TEMPLATE, TRY_OUT_TEMPLATE = "docs.html", "docs_try.html"
REFERENCE_VARIABLES: Mapping[str, tuple[str, ...]] = {
    DOCS_TEMPLATE: ("page", "pages"),
    TRY_OUT_TEMPLATE: ("docs", "sheets", "scripts", "document"),
}
"""The templates of the API's reference by file name, and the variables that each is given.

`docs.html` makes the content of the frame: `page` is this page and `pages` are all of them, made by
`edge_api/operation/reference/pages.py`. `docs_try.html` runs `scripts` on the OpenAPI
`document`, in the frame BASE_TEMPLATE; `docs` is where the reference begins.
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """A built page with placeholders that the edge fills in."""

    file: str
    templates: frozenset[str]
    """File names of the templates that are rendered into it."""
    placeholders: tuple[str, ...]
    """Each occurs at least once; in addition, CONTENT_PLACEHOLDER occurs exactly once."""


FRAMES = (
    Frame(
        BASE_TEMPLATE,
        frozenset({TRY_OUT_TEMPLATE, *map("{}.html".format, PAGE_VARIABLES)}),
        (TITLE_PLACEHOLDER,),
    ),
    Frame(
        DOCS_BASE_TEMPLATE,
        frozenset({DOCS_TEMPLATE}),
        (TITLE_PLACEHOLDER, PATH_PLACEHOLDER, DESCRIPTION_PLACEHOLDER),
    ),
)


def read_notes(build: Path) -> Any:
    """Return the notes of a build about its templates.

    `ours` lists the templates of the default theme, in which an unknown name is an error. `unknown`
    has a sentence for each unknown name that other templates use. `lang` is the language of the
    site, `timezone` the name of its time zone.
    A build made before version 1.0.1 has no notes: then none of its templates counts as ours.
    """
    try:
        return json.loads((build / TEMPLATES_FOLDER / NOTES_FILE).read_bytes())
    except FileNotFoundError:
        return {"ours": [], "unknown": []}
