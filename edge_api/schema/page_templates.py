"""Templates that a build provides for pages of the edge.

They are plain Jinja2, with autoescape and nothing else. The build tries each of them before it
hands them over; the edge gives them exactly what is named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TEMPLATES_FOLDER = "templates"
"""Beside the site in a build; what lies in it is not public."""
CONTACT_PAGE = "contact/index.html"
"""The built page that the forms stand in."""
SHELL = "shell.html"
"""A built page without a content of its own: the frame of what the edge renders."""
SHELL_TITLE, SHELL_CONTENT = "<!-- title -->", "<!-- content -->"
"""Where the title goes, wherever that is; and where the content goes, once."""
DOCS_SHELL = "docs_shell.html"
"""Another such frame, for the pages of the API's reference."""
DOCS_PATH, DOCS_DESCRIPTION = "<!-- path -->", "<!-- description -->"
"""Where that has the path of the page, with a slash at both ends, and a sentence about it."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of the contact page, which is shown again with its values where one is invalid.

    Its template is given two mappings by the name of a field: `values`, what was typed, and
    `faults`, a sentence for each field at fault, and under `form` one about the whole.
    """

    template: str
    opening: str
    closing: str
    """Between these two the form stands in the page."""
    fields: tuple[str, ...]
    """Those that a person sees."""


CONTACT_FORM = Form(
    "contact_form.html",
    "<!-- contact form -->",
    "<!-- end of contact form -->",
    ("name", "email", "budget_tier", "message", "consent"),
)
ACCESS_FORM = Form(
    "access_form.html",
    "<!-- access form -->",
    "<!-- end of access form -->",
    ("name", "email", "purpose", "type"),
)
FORMS = (CONTACT_FORM, ACCESS_FORM)

PageName = Literal["consent", "notice", "access_requested", "unsubscribe", "search"]
PAGES: Mapping[PageName, tuple[str, ...]] = {
    "consent": (
        *("action", "hidden", "fault"),
        *("client_name", "client_id", "client_kind", "redirect_host", "is_loopback"),
        *("resource", "scopes"),
    ),
    "notice": ("sentences", "link"),
    "access_requested": ("claim_token", "claim_uri", "credential_type", "expires"),
    "unsubscribe": ("address", "action"),
    "search": ("words", "results", "leaf_size"),
}
"""What the template of each page is given; its file is the name with `.html` behind it."""

DOCS_PAGE, DOCS_TRY = "docs.html", "docs_try.html"
REFERENCE: Mapping[str, tuple[str, ...]] = {
    DOCS_PAGE: ("page", "pages"),
    DOCS_TRY: ("docs", "sheets", "scripts", "document"),
}
"""The templates of the reference by file name, and what each is given.

`docs.html` makes what stands in the frame: `page` is this page and `pages` are all of them, as
`edge_api/operation/reference/values.py` has them. `docs_try.html` runs `scripts` on the OpenAPI
`document`, in the frame SHELL; `docs` is where the reference begins.
"""


@dataclass(frozen=True, slots=True)
class Frame:
    """A built page that the edge puts something into."""

    file: str
    templates: frozenset[str]
    """File names of the templates whose pages stand in it."""
    marks: tuple[str, ...]
    """Each stands in it, one time or more; SHELL_CONTENT stands there once besides."""


FRAMES = (
    Frame(SHELL, frozenset({DOCS_TRY, *(f"{name}.html" for name in PAGES)}), (SHELL_TITLE,)),
    Frame(DOCS_SHELL, frozenset({DOCS_PAGE}), (SHELL_TITLE, DOCS_PATH, DOCS_DESCRIPTION)),
)
