"""Sentences for visitors in the language of the journal: gettext catalogues, numbers and dates.

English is the source: where a catalogue lacks a sentence, the English one is shown. The build makes
one MO file of the catalogues of the journal's theme and of this project's, which the edge loads.
Babel is imported only for languages other than English.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from gettext import GNUTranslations, NullTranslations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from babel.messages import Catalog

CATALOGUE: Final = "LC_MESSAGES/messages.po"
"""The catalogue in the folder of its language."""
_RIGHT_TO_LEFT: Final = frozenset(
    ["ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "nqo", "ps", "sd", "syr", "ug", "ur", "yi"]
)
_RTL_SCRIPTS: Final = frozenset({"adlm", "arab", "hebr", "nkoo", "rohg", "syrc", "thaa"})


class Sentence(str):
    """An English sentence for visitors that knows how to be said in another language.

    It is what it reads as in English, so that logs and the API need no language.
    """

    __slots__ = ("forms", "number", "values")
    forms: tuple[str, ...]
    number: int
    values: Mapping[str, object]


def sentence(text: str, /, **values: object) -> Sentence:
    """Return a sentence with values in place of `%(name)s`."""
    return counted(text, "", 1, **values)


def counted(one: str, many: str, number: int, /, **values: object) -> Sentence:
    """Return the sentence for a number, in the singular or the plural."""
    forms = (one, many) if many else (one,)
    made = Sentence(ENGLISH.fill(forms[number != 1 and bool(many)], values))
    made.forms, made.number, made.values = forms, number, values
    return made


@dataclass(frozen=True)
class Language:
    """A language with its catalogue; `code` is a BCP 47 tag."""

    code: str = "en"
    catalogue: NullTranslations = field(default_factory=NullTranslations, compare=False, repr=False)
    compiled: bytes = field(default=b"", repr=False)
    """The catalogue as an MO file; empty: none."""

    @property
    def is_english(self) -> bool:
        """Whether numbers and dates are written as in English."""
        return self.code.lower().partition("-")[0] in {"en", ""} or self._locale is None

    @property
    def _locale(self) -> Any:
        from babel import Locale, UnknownLocaleError  # noqa: PLC0415  not for English

        try:
            return Locale.parse(self.code.replace("_", "-"), sep="-")
        except (ValueError, UnknownLocaleError):
            return None

    def fill(self, text: str, values: Mapping[str, object]) -> str:
        """Return the text with values that are said in this language."""
        return text % {name: self.say(value) for name, value in values.items()} if values else text

    def say(self, value: object) -> object:
        """Return a sentence or a number in this language, and any other value as it is."""
        if isinstance(value, Sentence):
            one, *more = value.forms
            find = self.catalogue.ngettext
            found = find(one, *more, value.number) if more else self.catalogue.gettext(one)
            return self.fill(found, value.values)
        return self.number(value) if type(value) is int else value

    def number(self, value: int) -> str:
        """Return a number with its thousands apart."""
        if self.is_english:
            return f"{value:,}"
        from babel.numbers import format_decimal  # noqa: PLC0415

        return format_decimal(value, locale=self._locale)

    def day(self, value: date, *, short: bool = False) -> str:
        """Return a day; a short one is without its year."""
        if self.is_english:
            return f"{value.day} {value:%b}" if short else f"{value.day} {value:%B %Y}"
        from babel.dates import format_date, format_skeleton  # noqa: PLC0415

        if short:
            return format_skeleton("MMMd", value, locale=self._locale)
        return format_date(value, "long", locale=self._locale)

    def instant(self, value: str | datetime) -> str:
        """Return a day and a time of UTC."""
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        moment = moment.astimezone(UTC)
        return f"{self.day(moment)}, {moment:%H:%M} UTC"


ENGLISH: Final = Language()


def load_language(code: str, compiled: bytes) -> Language:
    """Return a language with its compiled catalogue, which may be empty."""
    catalogue = GNUTranslations(io.BytesIO(compiled)) if compiled else NullTranslations()
    return Language(code, catalogue, compiled)


def compile_catalogue(code: str, folders: Iterable[Path]) -> bytes:
    """Return the catalogue of a language as an MO file; empty where no folder has one.

    Of a sentence the first folder's translation counts; `de_AT` goes before `de`. Raises
    ValueError, with file and line, for a catalogue that cannot be read or does not fit.
    """
    whole = code.replace("-", "_")
    names = dict.fromkeys((whole, whole.partition("_")[0]))
    places = [folder / name / CATALOGUE for folder in folders for name in names]
    catalogues = [_read_catalogue(each) for each in places if each.is_file()]
    if not catalogues:
        return b""
    from babel.messages.mofile import write_mo  # noqa: PLC0415  not for English

    *others, base = catalogues
    for message in (each for other in reversed(others) for each in other):
        if message.id and message.string and not message.fuzzy:
            base.delete(message.id)
            base[message.id] = message
    file = io.BytesIO()
    write_mo(file, base)
    return file.getvalue()


def _read_catalogue(path: Path) -> "Catalog":
    from babel.messages.pofile import PoFileError, read_po  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            found = read_po(file, abort_invalid=True)
        found.creation_date = found.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
        faults = [(each.lineno, why) for each in found if each.string for why in each.check(found)]
    except PoFileError as error:
        faults = [(error.lineno, error)]
    except (ValueError, LookupError) as error:  # its encoding, or what its head says
        faults = [(1, error)]
    if faults:
        raise ValueError(f"{path}:{faults[0][0]}: {faults[0][1]}; fix the catalogue")
    return found


def text_direction(code: str) -> str:
    """Return `rtl` or `ltr` for the BCP 47 tag of a language."""
    first, *others = code.lower().replace("_", "-").split("-")
    scripts = [each for each in others if len(each) == 4]  # noqa: PLR2004  such as Arab
    is_rtl = _RTL_SCRIPTS.issuperset(scripts) if scripts else first in _RIGHT_TO_LEFT
    return "rtl" if is_rtl else "ltr"
