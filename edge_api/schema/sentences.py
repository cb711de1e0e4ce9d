"""Sentences for visitors in the language of the journal: gettext catalogues, numbers and dates.

English is the source: where a catalogue lacks a sentence, the English one is shown. The build
compiles the catalogues of the journal's theme and of this project into one MO file for the edge.
Babel is imported only for languages other than English.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from gettext import GNUTranslations, NullTranslations, c2py
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from babel.messages import Catalog, Message

CATALOGUE_PATH: Final = "LC_MESSAGES/messages.po"
"""The path of a catalogue within the folder of its language."""
_RIGHT_TO_LEFT: Final = frozenset(
    ["ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "nqo", "ps", "sd", "syr", "ug", "ur", "yi"]
)
_RTL_SCRIPTS: Final = frozenset({"adlm", "arab", "hebr", "nkoo", "rohg", "syrc", "thaa"})


class Sentence(str):
    """An English sentence for visitors, with the parts from which its translation is made.

    As a string it is the English text, so that logs and the API need no language.
    """

    __slots__ = ("parts",)
    parts: tuple[tuple[str, ...], int, Mapping[str, object]]
    """The English forms, the singular first; the number that chooses one; values to put in."""


def sentence(text: str, /, **values: object) -> Sentence:
    """Return a sentence with values in place of `%(name)s`."""
    return counted(text, "", 1, **values)


def counted(one: str, many: str, number: int, /, **values: object) -> Sentence:
    """Return the sentence for a number, in the singular or the plural."""
    forms = (one, many) if many else (one,)
    made = Sentence(ENGLISH.fill(forms[number != 1 and bool(many)], values))
    made.parts = forms, number, values
    return made


@dataclass(frozen=True)
class Language:
    """A language: its sentences, and how it writes numbers and days."""

    template_fields: ClassVar = frozenset(["code"])
    code: str = "en"
    """BCP 47 tag."""
    catalogue: NullTranslations = field(default_factory=NullTranslations)
    compiled: bytes = b""
    """The catalogue as an MO file; empty if there is none."""
    format_number: Callable[[int], str] = "{:,}".format
    format_day: Callable[[date], str] = "{0.day} {0:%B %Y}".format
    format_short_day: Callable[[date], str] = "{0.day} {0:%b}".format
    """Formats a day without its year."""

    def find_translation(self, forms: tuple[str, ...], number: int) -> str:
        """Return the translation of a sentence; of two forms, the one for the number."""
        if forms[1:]:
            return self.catalogue.ngettext(forms[0], forms[1], number)
        return self.catalogue.gettext(forms[0])

    def fill(self, text: str, values: Mapping[str, object]) -> str:
        """Return the text with the values put in, each in this language."""
        return (
            text % {name: self.translate(value) for name, value in values.items()}
            if values
            else text
        )

    def translate(self, value: object) -> str:
        """Return a sentence or a number in this language, and any other text unchanged."""
        if isinstance(value, Sentence):
            forms, number, values = value.parts
            return self.fill(self.find_translation(forms, number), values)
        return self.format_number(value) if isinstance(value, int) else str(value)

    def instant(self, value: str | datetime) -> str:
        """Return an instant as a day and a time in UTC."""
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        moment = moment.astimezone(UTC)
        return f"{self.format_day(moment)}, {moment:%H:%M} UTC"


ENGLISH: Final = Language()


def load_language(code: str, compiled: bytes) -> Language:
    """Return a language with its compiled catalogue, which may be empty.

    A language that Babel does not know gets English formats of numbers and days.
    """
    found = Language(code, GNUTranslations(io.BytesIO(compiled)), compiled) if compiled else ENGLISH
    if not re.fullmatch("(?i)en([-_].*)?", code):
        from babel import Locale, UnknownLocaleError, dates, numbers  # noqa: PLC0415  slow

        with suppress(ValueError, UnknownLocaleError):
            locale = Locale.parse(code.replace("_", "-"), sep="-")
            found = replace(
                found,
                format_number=partial(numbers.format_decimal, locale=locale),
                format_day=partial(dates.format_date, format="long", locale=locale),
                format_short_day=partial(dates.format_skeleton, "MMMd", locale=locale),
            )
    return replace(found, code=code)


def compile_catalogue(code: str, folders: Iterable[Path]) -> bytes:
    """Return the catalogue of a language as an MO file; empty where no folder has one.

    The first folder that translates a sentence wins, and `de_AT` wins over `de`. Raises
    ValueError, with file and line, for a catalogue that cannot be read or does not fit.
    """
    places = [place for folder in folders for place in _find_catalogues(code, folder)]
    file, found = io.BytesIO(), [(each, _read_catalogue(each)) for each in places]
    if found:
        from babel.messages.mofile import write_mo  # noqa: PLC0415  not for English

        *others, (_, base) = found
        for place, other in reversed(others):
            numbers_differ = _list_plurals(other) != _list_plurals(base)
            for message in other:
                if not message.id or not message.string or message.fuzzy:
                    continue
                if message.pluralizable and numbers_differ:
                    raise ValueError(
                        f"{place}:{message.lineno}: its plural forms are not those of "
                        f'{found[-1][0]}; write "Plural-Forms: {base.plural_forms}\\n" in its '
                        "head, and each form of its sentences"
                    )
                base.delete(message.id)
                base[message.id] = message
        write_mo(file, base)
    return file.getvalue()


def _find_catalogues(code: str, folder: Path) -> Iterator[Path]:
    """Yield a language's catalogues in a folder, ignoring case: `zh_Hant_TW` before `zh`."""
    parts = code.replace("-", "_").casefold().split("_")
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    for count in range(len(parts), 0, -1):
        name = "_".join(parts[:count])
        named = (each / CATALOGUE_PATH for each in there if each.name.casefold() == name)
        yield from (each for each in named if each.is_file())


def _list_plurals(catalogue: "Catalog") -> list[int]:
    """Return the index of the plural form that each number from 0 to 1000 takes."""
    return list(map(c2py(catalogue.plural_expr), range(1001)))


def _read_catalogue(path: Path) -> "Catalog":
    from babel.messages.pofile import PoFileError, read_po  # noqa: PLC0415

    try:
        with path.open("rb") as file:
            found = read_po(file, abort_invalid=True)
        given = [each for each in found if each.id and each.string and not each.fuzzy]
        faults: list[tuple[int | None, object]] = [
            (each.lineno, why) for each in given for why in each.check(found)
        ]
    except (PoFileError, ValueError, LookupError) as error:  # also for a bad encoding or head
        raise ValueError(f"{path}:{getattr(error, 'lineno', 0) + 1}: {error}; fix it") from error
    faults += [(each.lineno, why) for each in given for why in _find_misfits(each)]
    for line, why in faults:
        raise ValueError(f"{path}:{line}: {why}; fix the catalogue")
    # With the present time, the same catalogue would be compiled to different bytes every time.
    found.creation_date = found.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    return found


_MARKUP: Final = re.compile('<[^>]*>?|"')  # a quotation mark would end an attribute


def _find_misfits(message: "Message") -> Iterator[str]:
    """Yield faults of a translation: values or markup that the English sentence lacks."""
    texts = (message.id, message.string or "")
    english, forms = [[each] if isinstance(each, str) else list(each) for each in texts]
    values = dict.fromkeys(re.findall(r"%\((\w+)\)", "".join(english)), 0)
    marks = {mark for each in english for mark in _MARKUP.findall(each)}
    for form in forms:
        try:
            _ = form % values
        except (KeyError, ValueError, TypeError) as error:
            yield f"{form!r} takes no values of the English sentence: {error}; a sign % is %%"
        yield from (
            f"{mark} is not in the English sentence"
            for mark in _MARKUP.findall(form)
            if mark not in marks
        )


def text_direction(code: str) -> str:
    """Return `rtl` or `ltr` for the BCP 47 tag of a language."""
    first, *others = code.lower().replace("_", "-").split("-")
    scripts = [each for each in others if len(each) == 4]  # noqa: PLR2004  such as Arab
    is_rtl = _RTL_SCRIPTS.issuperset(scripts) if scripts else first in _RIGHT_TO_LEFT
    return "rtl" if is_rtl else "ltr"
