"""Text that people send: cleaned, bounded, and the faults of a form named by field."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from unicodedata import normalize

from pydantic import BaseModel, ValidationError

from edge_api.db.email_address import normalize_address
from edge_api.db.problems import format_validation_error
from edge_api.db.tables import MAX_EMAIL_LENGTH
from edge_api.db.types import refuse_nul

_WHITE: Final = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""Unicode's white space without the control characters, as a class of a regular expression."""
_CONTROL: Final = "\x00-\x1f\x7f-\x9f"  # Unicode's category Cc
_CONTROL_BUT_LINES: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""The same without the tab and the line feed."""

_FIRST_CHARACTERS: Final = [chr(number) for number in range(0x3001)]  # as far as white space goes


class TextRule:
    """A rule for texts: 1 to `most` code points; `lines` allows tabs and line feeds."""

    def __init__(self, most: int, *, lines: bool = False) -> None:
        self._most = most
        self._white = f"{_WHITE}\t\n" if lines else _WHITE
        self._forbidden = _CONTROL_BUT_LINES if lines else _CONTROL
        self._trimmed = "".join(filter(re.compile(f"[{self._white}]").match, _FIRST_CHARACTERS))
        self._control = re.compile(f"[{self._forbidden}]")

    def clean(self, text: str) -> str:
        """Return the text trimmed and in NFC, unless NFC makes it too long. Raises ValueError."""
        if self._control.search(refuse_nul(text)):
            raise ValueError("must not contain control characters")
        bare = text.strip(self._trimmed)
        normal = normalize("NFC", bare)
        kept = normal if len(normal) <= self._most else bare
        if not kept:
            raise ValueError("must not be empty")
        if len(kept) > self._most:
            raise ValueError(f"must have 1 to {self._most} characters")
        return kept

    def json_schema(self, description: str) -> dict[str, Any]:
        """Return the rule as JSON Schema; it counts the white space that `clean` strips."""
        allowed = f"[^{self._forbidden}]*"
        pattern = f"^{allowed}[^{self._white}{self._forbidden}]{allowed}$"
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": self._most,
            "pattern": _escape(pattern),
            "description": f"{description} White space around it does not count.",
        }


def _escape(pattern: str) -> str:
    return "".join(
        character if " " <= character <= "~" else f"\\u{ord(character):04x}"
        for character in pattern
    )


Model = TypeVar("Model", bound=BaseModel)


class FormFaults(Exception):  # noqa: N818  a form is filled in wrongly, which is no error of ours
    """A form is not filled in well; `by_field` has one sentence for each field to fix."""

    def __init__(self, by_field: Mapping[str, str]) -> None:
        self.by_field = by_field
        super().__init__("; ".join(f"{name}: {fault}" for name, fault in by_field.items()))


def normalize_newlines(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return fields as they were typed: a form sends each line break as CR LF (HTML, 4.10.21)."""
    return {name: text.replace("\r\n", "\n") for name, text in fields.items()}


def check_form(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return what a form says. Raises FormFaults."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise FormFaults(
            {str(fault["loc"][0]): format_validation_error(fault) for fault in faults}
        ) from None


_EMAIL = TextRule(MAX_EMAIL_LENGTH)
HONEYPOT: Final = "_gotcha"
"""A member that no person sees in the form: what fills it in is a machine."""


def check_email(text: str) -> str:
    """Return an address as it is kept. Raises ValueError."""
    address = _EMAIL.clean(text)
    normalize_address(address)
    return address
