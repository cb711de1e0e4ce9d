"""The catalogues of sentences: complete, and each translation fits into its place."""

import re
from pathlib import Path
from typing import Any

import pytest
from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.pofile import read_po

from edge_api.schema.sentences import (
    CATALOGUE,
    ENGLISH,
    compile_catalogue,
    counted,
    load_language,
    sentence,
    text_direction,
)
from tests.edge.edge_process import ROOT

LOCALE = ROOT / "theme" / "locale"
LANGUAGES = ("de", "es", "fr", "he", "ja")
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "sentence": None, "counted": (1, 2)}
HEAD = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""


def read(path: Path) -> Catalog:
    """Return a catalogue."""
    with path.open("rb") as file:
        return read_po(file)


def list_forms(texts: Any) -> list[str]:
    """Return the forms of a sentence or of its translation."""
    return [texts] if isinstance(texts, str) else list(texts)


def test_the_template_has_every_sentence() -> None:
    """What translators start from is what the sources say; `docs/translating.md` makes it anew."""
    with (LOCALE / "babel.cfg").open(encoding="utf-8") as file:
        methods, options = parse_mapping_cfg(file)  # type: ignore[no-untyped-call]
    found = extract_from_dir(ROOT, methods, options, KEYWORDS)
    said = {tuple(list_forms(text)) for _, _, text, _, _ in found}
    kept = {tuple(list_forms(each.id)) for each in read(LOCALE / "messages.pot") if each.id}

    assert said ^ kept == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_complete_and_fits(language: str) -> None:
    """No sentence is missing; placeholders and markup are those of the English one."""
    catalogue = read(LOCALE / language / CATALOGUE)
    kept = {tuple(list_forms(each.id)) for each in read(LOCALE / "messages.pot") if each.id}
    assert {tuple(list_forms(each.id)) for each in catalogue if each.id} == kept

    for message in catalogue:
        if not message.id:
            continue
        english = list_forms(message.id)[-1]
        assert list(message.check(catalogue)) == [], english
        for text in list_forms(message.string):
            assert text, english
            for marks in (r"%\(\w+\)s", r"<[^>]+>|&\w+;"):
                wanted = sorted(re.findall(marks, english))
                # A singular may say its number in words, or leave out a space that English has.
                assert set(re.findall(marks, text)) - set(wanted) == set(), english
                if marks.startswith("%") or "<" in english:
                    assert sorted(re.findall(marks, text)) == wanted, english
            assert '"' not in re.sub("<[^>]+>", "", text), english  # it would end an attribute


def test_a_theme_goes_before(tmp_path: Path) -> None:
    """A sentence of the first folder counts, the language of a region before the language."""
    for name, text in (("a/de", "Dunkel"), ("b/de", "Nacht"), ("b/de_AT", "Finster")):
        place = tmp_path / name / CATALOGUE
        place.parent.mkdir(parents=True)
        place.write_text(f'{HEAD}msgid "Dark page"\nmsgstr "{text}"\n', encoding="utf-8")

    def say(code: str, *folders: str) -> str:
        places = [*(tmp_path / folder for folder in folders), LOCALE]
        return load_language(code, compile_catalogue(code, places)).say(sentence("Dark page"))

    assert say("de") == "Dunkles Design"
    assert say("de", "a", "b") == say("de-AT", "a", "b") == "Dunkel"
    assert say("de-AT", "b") == "Finster"
    assert say("sv", "a") == say("en", "a") == "Dark page"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('msgid "Dark page"\nmsgstr "Dunkel"\nDunkel\n', 8),
        ('msgid "%(number)s post"\nmsgstr "%(nummer)s Beitrag"\n', 6),
        ("msgid", 6),
    ],
)
def test_a_broken_catalogue_is_named(tmp_path: Path, text: str, line: int) -> None:
    """With its file and the line."""
    place = tmp_path / "de" / CATALOGUE
    place.parent.mkdir(parents=True)
    place.write_text(HEAD + text, encoding="utf-8")

    with pytest.raises(ValueError, match=re.escape(str(place))) as raised:
        compile_catalogue("de", [tmp_path])
    assert f"{CATALOGUE}:{line}: " in str(raised.value)


def test_numbers_choose_forms() -> None:
    """In English, and by the rule of another language."""
    french = load_language("fr", compile_catalogue("fr", [LOCALE]))
    found = [counted("%(shown)s post", "%(shown)s posts", n, shown=n) for n in (0, 1, 1234)]

    assert found == ["0 posts", "1 post", "1,234 posts"]
    assert list(map(french.say, found)) == ["0 article", "1 article", "1\u202f234 articles"]
    assert ENGLISH.say("100 %") == "100 %"


def test_directions() -> None:
    """Of languages, and of the scripts that a tag may name."""
    for code in ("he", "ar-EG", "fa", "az-Arab", "ur_PK"):
        assert text_direction(code) == "rtl"
    for code in ("en", "", "ja", "ar-Latn", "hebr"):
        assert text_direction(code) == "ltr"
