"""Text that people send: normalized and validated, with errors by field of a form."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from edge_api.db.email_address import normalize_address
from edge_api.db.problems import format_validation_error
from edge_api.db.tables import MAX_EMAIL_LENGTH
from edge_api.db.types import refuse_nul

_WHITE_SPACE: Final = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's white space without the control characters, as a class of a regular expression."""
_CONTROL: Final = "\x00-\x1f\x7f-\x9f"  # Unicode's category Cc
_CONTROL_EXCEPT_LINES: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
"""The same without the tab and line ends."""
_NONCHARACTERS: Final = "\ufdd0-\ufdef\ufffe\uffff"
"""Those up to U+FFFF; published patterns have no range beyond, as validators differ there."""
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
"""Unicode's Default_Ignorable_Code_Point, annotation marks and the blank of Braille, likewise."""
_INVISIBLE_BEYOND: Final = "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_VISIBLE: Final = re.compile(f"[^\t\n{_WHITE_SPACE}{_INVISIBLE}{_INVISIBLE_BEYOND}]")
_ENDS_OF_PLANES: Final = "".join(
    chr(end - 1) + chr(end) for end in range(0x1FFFF, 0x110000, 1 << 16)
)
_NONCHARACTER: Final = re.compile(f"[{_NONCHARACTERS}{_ENDS_OF_PLANES}]")
_LINE_END: Final = re.compile("\r\n?")


class TextRule:
    """A rule for texts: 1 to `max_length` code points, one of them visible.

    `multiline` allows tabs and line ends, which become line feeds.
    """

    def __init__(self, max_length: int, *, multiline: bool = False) -> None:
        self._max_length = max_length
        self._white = f"{_WHITE_SPACE}\t\n\r" if multiline else _WHITE_SPACE
        self._forbidden = _CONTROL_EXCEPT_LINES if multiline else _CONTROL
        self._trimmed = "".join(  # from the first characters, as far as white space goes
            filter(re.compile(f"[{self._white}]").match, map(chr, range(0x3001)))
        )
        self._control = re.compile(f"[{self._forbidden}]")

    def clean(self, text: str) -> str:
        """Return the text trimmed and in NFC, unless NFC makes it too long. Raises ValueError."""
        text = _LINE_END.sub("\n", text)  # of a single line, both are refused
        if self._control.search(refuse_nul(text)):
            raise ValueError("must not contain control characters")
        if _NONCHARACTER.search(text):
            raise ValueError("must not contain noncharacters, such as U+FFFF")
        trimmed = text.strip(self._trimmed)
        # NFC makes one of four characters at the most, and can take the square of a length.
        can_fit = len(trimmed) <= 4 * self._max_length
        normal = normalize("NFC", trimmed) if can_fit else trimmed
        cleaned = normal if len(normal) <= max(self._max_length, len(trimmed)) else trimmed
        if not cleaned:
            raise ValueError("must not be empty")
        if not _VISIBLE.search(cleaned):
            raise ValueError("must have a visible character")
        if (more := len(cleaned) - self._max_length) > 0:
            raise ValueError(
                f"{len(cleaned):,} of {self._max_length:,} characters: shorten it by {more:,}"
            )
        return cleaned

    def json_schema(self, description: str) -> dict[str, Any]:
        """Return the rule as JSON Schema; it counts the white space that `clean` strips."""
        forbidden = f"{self._forbidden}{_NONCHARACTERS}"
        pattern = f"^[^{forbidden}]*[^{self._white}{_INVISIBLE}{forbidden}][^{forbidden}]*$"
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": self._max_length,
            "pattern": _escape(pattern),
            "description": f"{description} Outer white space does not count; "
            "one character has to be visible.".lstrip(),
        }


def _escape(pattern: str) -> str:
    return "".join(
        character if " " <= character <= "~" else f"\\u{ord(character):04x}"
        for character in pattern
    )


Model = TypeVar("Model", bound=BaseModel)


class FormErrors(Exception):  # noqa: N818  one for several fields
    """A form is invalid; `by_field` has one sentence for each field to fix."""

    def __init__(self, by_field: Mapping[str, str]) -> None:
        self.by_field = by_field
        super().__init__("; ".join(f"{name}: {error}" for name, error in by_field.items()))


def check_form(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return the validated form. Raises FormErrors."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise FormErrors(
            {str(error["loc"][0]): format_validation_error(error) for error in errors}
        ) from None


_EMAIL = TextRule(MAX_EMAIL_LENGTH)
HONEYPOT: Final = "_gotcha"
"""A field that is hidden from people, so only bots fill it in."""


def check_email(text: str) -> str:
    """Return an email address as it is stored. Raises ValueError."""
    address = _EMAIL.clean(text)
    normalize_address(address)
    return address
