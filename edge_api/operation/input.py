"""Text that people send, normalized and validated, and the forms of pages without scripts."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar
from unicodedata import normalize

from pydantic import (
    BaseModel,
    BeforeValidator,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema

from edge_api.auth.actor import Actor
from edge_api.db.mail_addresses import normalize_address
from edge_api.db.problems import Code, Problem, format_validation_error
from edge_api.db.table import RowModel, find_columns
from edge_api.db.types import Content, check_text
from edge_api.operation.model import (
    FORM,
    Body,
    HtmlResult,
    OperationRequest,
    OperationResult,
    Service,
)
from edge_api.schema.page_templates import Form
from edge_api.schema.sentences import sentence

_WHITE_SPACE: Final = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's white space without the control characters, as a class of a regular expression."""
_CONTROL: Final = "\x00-\x1f\x7f-\x9f"  # Unicode's category Cc
_CONTROL_EXCEPT_TAB_AND_LINE_ENDS: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""Control characters other than the tab and line ends."""
_NONCHARACTERS: Final = "\ufdd0-\ufdef\ufffe\uffff"
"""The noncharacters up to U+FFFF. Published patterns name only these: validators differ beyond."""
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
"""Invisible characters to U+FFFF: Unicode's ignorable ones, annotation marks, Braille's blank."""
_VISIBLE: Final = re.compile(  # excludes invisible characters beyond U+FFFF too
    f"[^\t\n{_WHITE_SPACE}{_INVISIBLE}"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_PLANE_END_NONCHARACTERS: Final = "".join(
    chr(end - 1) + chr(end) for end in range(0x1FFFF, 0x110000, 1 << 16)
)
_NONCHARACTER: Final = re.compile(f"[{_NONCHARACTERS}{_PLANE_END_NONCHARACTERS}]")


class TextRule:
    """A rule for texts: 1 to `max_length` code points, one of them visible.

    The content `lines` may have tabs and line ends, which become line feeds; the content `address`
    is an e-mail address.
    """

    def __init__(self, max_length: int, content: Content = "line") -> None:
        self._max_length = max_length
        self._content = content
        is_multiline = content == "lines"
        self._white_space = f"{_WHITE_SPACE}\t\n\r" if is_multiline else _WHITE_SPACE
        self._forbidden = _CONTROL_EXCEPT_TAB_AND_LINE_ENDS if is_multiline else _CONTROL
        self._stripped_characters = "".join(  # all white space is below U+3001
            filter(re.compile(f"[{self._white_space}]").match, map(chr, range(0x3001)))
        )
        self._control = re.compile(f"[{self._forbidden}]")

    def clean(self, text: str) -> str:
        """Return the text trimmed and in NFC, unless NFC makes it too long. Raises ValueError."""
        text = re.sub("\r\n?", "\n", text)  # the next step refuses them in a single line
        if self._control.search(check_text(text)):
            raise ValueError(sentence("must not contain control characters"))
        if not text.isascii() and _NONCHARACTER.search(text):
            raise ValueError(sentence("must not contain noncharacters, such as U+FFFF"))
        trimmed = text.strip(self._stripped_characters)
        # NFC makes one character of four at most, and can take the square of the length. It leaves
        # ASCII as it is, which is found sooner.
        can_fit = len(trimmed) <= 4 * self._max_length and not trimmed.isascii()
        normal = normalize("NFC", trimmed) if can_fit else trimmed
        cleaned = normal if len(normal) <= max(self._max_length, len(trimmed)) else trimmed
        if not cleaned:
            raise ValueError(sentence("must not be empty"))
        if not _VISIBLE.search(cleaned):
            raise ValueError(sentence("must have a visible character"))
        if (more := len(cleaned) - self._max_length) > 0:
            raise ValueError(
                sentence(
                    "%(length)s of %(most)s characters: shorten it by %(more)s",
                    length=len(cleaned),
                    most=self._max_length,
                    more=more,
                )
            )
        if self._content == "address":
            normalize_address(cleaned)
        return cleaned

    def json_schema(self, description: str) -> dict[str, Any]:
        """Return the rule as JSON Schema, whose lengths include white space that `clean` strips.

        For an address it is only a format: the description of the column stays as it is.
        """
        if self._content == "address":
            return {"format": "email"}
        forbidden = f"{self._forbidden}{_NONCHARACTERS}"
        pattern = f"^[^{forbidden}]*[^{self._white_space}{_INVISIBLE}{forbidden}][^{forbidden}]*$"
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": self._max_length,
            "pattern": "".join(
                character if " " <= character <= "~" else f"\\u{ord(character):04x}"
                for character in pattern
            ),
            "description": f"{description} Outer white space does not count; "
            "one character has to be visible.".lstrip(),
        }


class SentColumns(RowModel, extra="ignore"):
    """The base of inputs with columns of a table; texts are normalized, then validated."""

    @field_validator("*", mode="before")
    @classmethod
    def _clean(cls, value: Any, info: ValidationInfo) -> Any:
        rule = _find_rules(cls).get(info.field_name or "")
        return rule.clean(value) if rule and isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON Schema, in which each text has its rule."""
        found = handler.resolve_ref_schema(handler(schema))
        for name, rule in _find_rules(cls).items():
            member = found["properties"][name]
            for each in member.get("anyOf", [member])[:1]:  # the second one is null
                each.update(rule.json_schema(each.get("description", "")))
        return found


@cache
def _find_rules(model: type[BaseModel]) -> Mapping[str, TextRule]:
    """Return the rules of an input's columns: of those that are texts with a maximum length."""
    return {
        name: TextRule(most, column.content)
        for name, column in find_columns(model).items()
        if (most := column.bounds[1]) and not column.choices
    }


Model = TypeVar("Model", bound=BaseModel)


class FormErrors(Exception):  # noqa: N818  it has the errors of several fields
    """A form is invalid, or its page is out of date (`conflict`).

    `by_field` has one sentence for each field to fix, or for "form".
    """

    def __init__(self, by_field: Mapping[str, str], code: Code = "invalid") -> None:
        self.by_field, self.code = by_field, code
        super().__init__("; ".join(f"{name}: {error}" for name, error in by_field.items()))


def check_form(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return the validated form; an empty optional field counts as missing.

    Raises FormErrors.
    """
    required = {name for name, info in model.model_fields.items() if info.is_required()}
    filled = {name: text for name, text in given.items() if text != "" or name in required}
    try:
        return model.model_validate(filled)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise FormErrors(
            {str(error["loc"][0]): format_validation_error(error) for error in errors}
        ) from None


HONEYPOT: Final = "_gotcha"
"""A field that is hidden from people, so only bots fill it in."""


FormFields = dict[str, str]
"""The values that were entered, by field name."""


def _last_values(members: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one value for each name: the last one if a field is sent twice."""
    return {name: text[-1] if isinstance(text, list) else text for name, text in members.items()}


class FormFile(str):
    """A file that a browser sent: its name, with its bytes."""

    __slots__ = ("data",)
    data: bytes
    """More than the limit where the file is larger: its end was dropped."""


BODY: Final = Body(
    TypeAdapter(Annotated[FormFields, BeforeValidator(_last_values)]),
    {"type": "object", "additionalProperties": {"type": "string"}},
    max_bytes=128 * 1024,  # so large that a text far too long is answered with its error
    media_type=FORM,
)


def form_pairs(form: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the members of a decoded form as pairs."""
    return [
        (name, each)
        for name, value in form.items()
        for each in (value if isinstance(value, list) else [value])
    ]


def check_same_site(service: Service, headers: Mapping[str, str], _peer: str) -> None:
    """Reject a form of another site (Fetch Metadata, section 2.3). Raises Problem `forbidden`."""
    fetch_site = headers.get("Sec-Fetch-Site")
    if fetch_site is None:
        host, site_url = headers.get("Host", ""), service.settings.site_url
        origin = headers.get("Origin", site_url)  # programs send none
        is_same_site = origin in (site_url, f"http://{host}", f"https://{host}")
    else:
        is_same_site = fetch_site in ("same-origin", "none")
    if not is_same_site:
        raise Problem(
            "forbidden", sentence("This form was sent from another site: use the contact page")
        )


async def render_form_errors(
    service: Service,
    form: Form,
    request: OperationRequest[None, FormFields],
    error: FormErrors | Problem,
) -> OperationResult:
    """Return the page with the form as it was filled in, and its errors."""
    if isinstance(error, FormErrors):
        problem, sentences = (
            Problem("invalid"),
            _error_sentences(form, error, service.pages.translate),
        )
    else:
        problem, sentences = error, {"form": sentence("%(fault)s.", fault=error.message)}
    body = await service.pages.render_form(form, values=request.body, errors=sentences)
    return HtmlResult(body, problem.status, problem.headers)


def _error_sentences(form: Form, errors: FormErrors, say: Callable[[str], str]) -> dict[str, str]:
    found = {
        name: say(sentence("%(fault)s.", fault=f"{text[:1].upper()}{text[1:]}"))
        for name, text in zip(errors.by_field, map(say, errors.by_field.values()), strict=True)
    }
    # The form does not show these fields: their errors are shown for the form as a whole.
    hidden = found.keys() - set(form.fields)
    whole = {"form": " ".join(f"{name}: {found[name]}" for name in sorted(hidden))}
    return {**found, **(whole if hidden else {})}


async def key_owner(service: Service, request: OperationRequest[Any, Any], key: str) -> Actor:
    """Return the holder of the API key in a form. Raises Problem `invalid`."""
    if not key:
        raise Problem("invalid", sentence("Paste an API key: it says who you are"))
    try:
        owner = await service.authenticator.authenticate(key)
    except Problem as problem:
        if problem.code != "unauthenticated":
            raise
        await service.limiter.hit("failed_auth", request.address)
        raise Problem("invalid", sentence("This is not a valid API key")) from None
    if owner.type != "api_key":
        raise Problem("invalid", sentence("This is a token: paste an API key"))
    return owner


def redirect(address: str) -> OperationResult:
    """Return a redirect, which browsers follow with GET (RFC 9110, section 15.4.4)."""
    return HtmlResult(b"", 303, {"Location": address}, media_type="")
