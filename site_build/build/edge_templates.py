"""Templates that the edge renders: found in the theme, tried with samples, and handed over.

The edge renders them with plain Jinja, without the site's variables and other templates. So this
module replaces calls of `asset()` by addresses, and adds the budget tiers as values. A template
that the edge cannot render stops the build.
"""

import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import StrictUndefined, TemplateSyntaxError, meta, nodes

from edge_api.schema.credentials import SCOPES
from edge_api.schema.page_templates import (
    CATALOGUE_FILE,
    CONTACT_PAGE,
    CONTENT_PLACEHOLDER,
    FORMS,
    FRAMES,
    MAX_BUDGET_TIER_LENGTH,
    NOTES_FILE,
    PAGE_VARIABLES,
    REFERENCE_VARIABLES,
    TEMPLATES_FOLDER,
    Frame,
    PageName,
)
from edge_api.schema.template_language import UnknownNames, make_environment, note_unknown_names
from site_build.addresses import Addresses
from site_build.build.fingerprint import HOUSE_THEME
from site_build.errors import BuildError
from site_build.site import Identity

Sample = Mapping[str, object]
_TIERS = "BUDGET_TIERS"


@dataclass(frozen=True, slots=True)
class EdgeTemplates:
    """The templates that a build hands over to the edge."""

    sources: dict[str, str]
    """Sources of the templates by file name."""
    default_names: list[str]
    """Names of templates of the default theme, in which an unknown name is an error."""
    unknown: UnknownNames
    """Unknown names in the other templates."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that the pages of these templates need."""
        return tuple(frame for frame in FRAMES if frame.templates & self.sources.keys())

    def add_frame(self, frame: Frame, built: str) -> None:
        """Add a built frame; raises BuildError if it lacks a placeholder."""
        lacking = [mark for mark in frame.placeholders if mark not in built]
        if lacking or built.count(CONTENT_PLACEHOLDER) != 1:
            raise BuildError(
                f"{frame.file} has no place for what the edge puts in; write "
                f"{', '.join(frame.placeholders)} where that goes, and {CONTENT_PLACEHOLDER} once, "
                "where the content goes"
            )
        self.sources[frame.file] = built

    def check_contact_page(self, page: str) -> None:
        """Raise BuildError when the contact page has no place for a form that is handed over."""
        for form in FORMS:
            _, opening, rest = page.partition(form.start_marker)
            if form.template in self.sources and (not opening or form.end_marker not in rest):
                raise BuildError(
                    f"/{CONTACT_PAGE} has no place for the form that a reader must fix; in its "
                    f"template put {form.start_marker} before and {form.end_marker} after the "
                    f"include of {form.template}"
                )

    def write(self, folder: Path, unknown: list[str], identity: Identity) -> None:
        """Write the templates for the edge, with the language, the time zone and `unknown`."""
        language, place = identity.language, folder / TEMPLATES_FOLDER
        place.mkdir(exist_ok=True)
        if language.compiled:
            (place / CATALOGUE_FILE).write_bytes(language.compiled)
        for name, source in self.sources.items():
            (place / name).write_text(source, encoding="utf-8")
        notes = {
            "ours": self.default_names,
            "unknown": unknown,
            "lang": language.code,
            "timezone": identity.timezone,
        }
        (place / NOTES_FILE).write_text(json.dumps(notes), encoding="utf-8")


def read_budget_tiers(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the setting BUDGET_TIERS; raises BuildError for what the API would not accept."""
    tiers = settings.get(_TIERS) or ()
    if not isinstance(tiers, list | tuple) or not all(
        isinstance(tier, str)
        and 0 < len(tier) <= MAX_BUDGET_TIER_LENGTH
        and tier == tier.strip()
        and tier.isprintable()
        and tiers.count(tier) == 1
        for tier in tiers
    ):
        raise BuildError(
            f"{_TIERS} has to be a list of different texts of 1 to {MAX_BUDGET_TIER_LENGTH} "
            "characters on one line, without spaces around them"
        )
    return tuple(tiers)


def find_edge_templates(
    folders: Sequence[Path],
    locate: Callable[[str], str],
    tiers: Sequence[str],
    addresses: Addresses,
) -> EdgeTemplates:
    """Return the templates for the edge; of two with one name, that of the first folder counts.

    `{{ asset('…') }}` becomes the address that `locate` returns, and a template that uses
    BUDGET_TIERS or `addresses` gets a line that sets them. Raises BuildError for a template that
    the edge could not render, and whatever `locate` raises for a missing file.
    """
    fixed = {
        name: f"{{% set {name} = {value!r} %}}"
        for name, value in ((_TIERS, list(tiers)), ("addresses", addresses._asdict()))
    }
    found = EdgeTemplates({}, [], {})
    contact_folder = next(
        (each for each in folders if (each / "contact.html").is_file()), folders[-1]
    )
    for name in _list_edge_templates():
        # Forms come with the contact page that shows them, never from a folder after its own.
        is_form = any(form.template == name for form in FORMS)
        among = folders[: folders.index(contact_folder) + 1] if is_form else folders
        path = next((each / name for each in among if (each / name).is_file()), None)
        if path is None:
            continue
        try:
            written = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise BuildError(f"{path} is not UTF-8; save it as UTF-8") from error
        source = re.sub(
            r"\{\{ *asset\( *(['\"])([^'\"]+)\1 *\) *\}\}",
            lambda asked: locate(asked[2]),
            written,
        )
        found.sources[name], unknown = _check(path, source, *fixed.items())
        found.unknown.update(unknown)
        found.default_names.extend([name] if HOUSE_THEME in path.parents else [])
    return found


def _list_edge_templates() -> dict[str, tuple[Sequence[str], Sequence[Sample]]]:
    """Return, by template, the names of the variables that the edge gives it, and samples of these.

    Templates of the API's reference have no samples: they are only compiled, since hardly any theme
    has its own.
    """
    refused: Sample = {"values": {}, "errors": {"form": "Try again later."}}
    forms: dict[str, tuple[Sequence[str], Sequence[Sample]]] = {
        form.template: (
            ("values", "errors"),
            (
                refused,
                {
                    "values": dict.fromkeys(form.fields, "Typed"),
                    "errors": dict.fromkeys(form.fields, "Too long."),
                },
            ),
        )
        for form in FORMS
    }
    pages = {f"{page}.html": (given, PAGE_SAMPLES[page]) for page, given in PAGE_VARIABLES.items()}
    return {**forms, **pages, **{name: (given, ()) for name, given in REFERENCE_VARIABLES.items()}}


@lru_cache(maxsize=64)  # Watchers and previews check the same templates again.
def _check(path: Path, source: str, *fixed: tuple[str, str]) -> tuple[str, UnknownNames]:
    """Return the source with the fixed values that it uses, and unknown names; raises BuildError.

    The template is rendered with every sample.
    """
    given, samples = _list_edge_templates()[path.name]
    noted: UnknownNames = {}
    is_default = HOUSE_THEME in path.parents
    undefined = StrictUndefined if is_default else note_unknown_names(noted)
    environment = make_environment(None, undefined)
    try:
        tree = environment.parse(source)
        asked = meta.find_undeclared_variables(tree)
        source = "".join(text for name, text in fixed if name in asked) + source
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise _explain(path, error.lineno, error.message) from error
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise BuildError(
            f"{path} takes in another template, which the edge does not have; write it out there"
        )
    foreign = asked - {*given, *dict(fixed)} - environment.globals.keys()
    for name in tree.find_all(nodes.Name):
        if name.name in foreign:
            noted["", name.lineno, f"{name.name!r} is undefined"] = None
    for sample in samples:
        try:
            template.render(sample)
        except Exception as error:
            # An expression of a template may raise anything: report its line.
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == "<template>"]
            raise _explain(path, lines[-1] if lines else None, str(error)) from error
    unknown: UnknownNames = {(str(path), line, about): None for _, line, about in noted}
    if unknown and is_default:
        raise _explain(path, *next(iter(unknown))[1:])
    return source, unknown


def _explain(path: Path, line: int | None, fault: str | None) -> BuildError:
    place = f"{path}:{line}" if line else str(path)
    return BuildError(f"{place}: {fault}; the edge renders this with plain Jinja, so fix it")


# Samples of the edge's values: each optional value is given in some, and missing in others.
_CHOICES = [
    {"name": name, "description": description, "checked": number % 2 == 0}
    for number, (name, description) in enumerate(SCOPES.items())
]
_CONSENT: Sample = {
    "action": "/api/public/oauth/authorize",
    "hidden": [("client_id", "https://agent.example/client"), ("seal", "sealed")],
    "fault": "",
    "client_name": "An agent",
    "client_id": "https://agent.example/client",
    "client_kind": "document",
    "redirect_host": "agent.example",
    "is_loopback": False,
    "resource": "the MCP endpoint",
    "scopes": _CHOICES,
}
_CLAIM: Sample = {
    "action": "/contact/access/claim/",
    "claim_token": "",
    "said": "",
    "site_url": "https://journal.example",
}
_CREDENTIAL: Sample = {
    "credential": "fe_sk_sample",
    "credential_type": "api_key",
    "credential_expires": "2027-03-05T09:30:00.000000Z",
    "scopes": ["posts:read"],
}
_RESULT: Sample = {
    "title": [("The first ", False), ("edge", True)],
    "snippet": [("Binders painted the fore-", False), ("edge", True)],
    "url": "https://journal.example/journal/the-first-edge/",
    "path": "/journal/the-first-edge/",
    "published_at": "2026-01-05T09:00:00Z",
    "published": datetime(2026, 1, 5, 9, tzinfo=UTC),
    "minutes": 3,
    "tags": ("bindings",),
}
_NOTHING_FOUND: Sample = {
    "total": 0,
    "page": 1,
    "pages": 1,
    "results": (),
    "previous_url": None,
    "next_url": None,
    "summary": "No post has all of these words.",
    "suggestion": "edge",
    "suggested_address": "/search?q=edge",
}
_FOUND: Sample = {
    "total": 21,
    "page": 2,
    "pages": 3,
    "results": (_RESULT, {**_RESULT, "tags": (), "snippet": ()}),
    "previous_url": "/search?q=edge",
    "next_url": "/search?q=edge&page=3",
    "summary": "21 posts have these words, best first.",
    "suggestion": None,
}
_SEARCH: Sample = {"words": "edge", "results": _FOUND, "page_size": 10}
PAGE_SAMPLES: Mapping[PageName, Sequence[Sample]] = MappingProxyType(
    {
        "consent": (
            _CONSENT,
            {**_CONSENT, "client_kind": "dynamic", "is_loopback": True, "fault": "Fix this."},
            {**_CONSENT, "client_kind": "registered", "hidden": [], "scopes": _CHOICES[:1]},
        ),
        "notice": (
            {"sentences": ["This is so.", "Do that."], "link": None},
            {"sentences": [], "link": ("/contact/", "Write to us")},
        ),
        "access_requested": tuple(
            {
                "claim_token": "fe_cl_sample",
                "claim_uri": "https://journal.example/api/public/access-requests/claim",
                "expires": "2026-12-05",
                "action": "/contact/access/claim/",
                "credential_type": each,
            }
            for each in ("api_key", "access_token", "both")
        ),
        "access_claim": (
            {**_CLAIM, "credentials": []},
            {**_CLAIM, "claim_token": "fe_cl_sample", "said": "Wait.", "credentials": []},
            {
                **_CLAIM,
                "credentials": [_CREDENTIAL, {**_CREDENTIAL, "credential_expires": None}],
            },
        ),
        "search": (
            _SEARCH,
            {
                **_SEARCH,
                "results": {**_FOUND, "total": 1, "page": 1, "pages": 1, "previous_url": None},
            },
            {**_SEARCH, "results": _NOTHING_FOUND},
            {
                **_SEARCH,
                "words": "",
                "results": {**_NOTHING_FOUND, "summary": "", "suggestion": None},
            },
        ),
        "subscribe": tuple(
            {
                "action": "/subscribe",
                "email": email,
                "fault": fault,
                "consent": "New posts by mail",
            }
            for email, fault in (("", ""), ("ann", "This is no address."))
        ),
        "subscription": (
            {"sentences": ["This is so."], "buttons": [("/unsubscribe?token=x", "Unsubscribe")]},
            {"sentences": ["This is so."], "buttons": []},
        ),
        "unsubscribe": ({"address": "a…@example.org", "action": "/unsubscribe?token=sample"},),
    }
)
