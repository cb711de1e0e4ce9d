"""The catalogues of sentences: complete, and each translation fits into its place."""

import re
from pathlib import Path
from typing import Any

import pytest
from babel import Locale
from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.pofile import read_po

from edge_api.schema.sentences import (
    CATALOGUE_PATH,
    ENGLISH,
    compile_catalogue,
    counted,
    load_language,
    sentence,
    text_direction,
)
from edge_api.schema.template_language import PLURAL_SAMPLES
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
    """The translators' template has the sentences of the sources; see `docs/translating.md`."""
    with (LOCALE / "babel.cfg").open(encoding="utf-8") as file:
        methods, options = parse_mapping_cfg(file)  # type: ignore[no-untyped-call]
    found = extract_from_dir(ROOT, methods, options, KEYWORDS)
    said = {tuple(list_forms(text)) for _, _, text, _, _ in found}
    kept = {tuple(list_forms(each.id)) for each in read(LOCALE / "messages.pot") if each.id}

    assert said ^ kept == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_complete_and_fits(language: str) -> None:
    """No sentence is missing; placeholders and markup are those of the English one."""
    catalogue = read(LOCALE / language / CATALOGUE_PATH)
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
        write_catalogue(tmp_path / name, f'{HEAD}msgid "Dark page"\nmsgstr "{text}"\n')

    def say(code: str, *folders: str) -> str:
        places = [*(tmp_path / folder for folder in folders), LOCALE]
        return load_language(code, compile_catalogue(code, places)).translate(sentence("Dark page"))

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
        ('msgid "Send"\nmsgstr "100 % %(x)s"\n', 6),
        ('msgid "Send"\nmsgstr "%(x)s"\n', 6),
        ('msgid "Send"\nmsgstr "<b>Senden</b>"\n', 6),
        ('msgid "<a href=\\"/\\">Send</a>"\nmsgstr "<a onclick=\\"x\\">Senden</a>"\n', 6),
        ('msgid "Send"\nmsgstr "\\" onclick=x"\n', 6),
        ('msgid "Send"\nmsgstr "<script"\n', 6),
    ],
)
def test_a_broken_catalogue_is_named(tmp_path: Path, text: str, line: int) -> None:
    """With its file and the line."""
    place = write_catalogue(tmp_path / "de", HEAD + text) / CATALOGUE_PATH

    with pytest.raises(ValueError, match=re.escape(str(place))) as raised:
        compile_catalogue("de", [tmp_path])
    assert f"{CATALOGUE_PATH}:{line}: " in str(raised.value)


def write_catalogue(place: Path, text: str) -> Path:
    """Write a catalogue, and return the folder of its language."""
    (place / CATALOGUE_PATH).parent.mkdir(parents=True)
    (place / CATALOGUE_PATH).write_text(text, encoding="utf-8")
    return place


def test_a_translation_in_doubt_is_no_fault(tmp_path: Path) -> None:
    """It is not used."""
    text = f'{HEAD}#, fuzzy\nmsgid "Send"\nmsgstr "100 % <b>"\n'
    write_catalogue(tmp_path / "sv", text)

    swedish = load_language("sv", compile_catalogue("sv", [tmp_path]))
    assert swedish.translate(sentence("Send")) == "Send"


def test_plural_forms_of_another_rule_are_refused(tmp_path: Path) -> None:
    """Else a number would take a form that was written for others; a rule is no spelling."""
    plural = 'msgid "%(n)s post"\nmsgid_plural "%(n)s posts"\nmsgstr[0] "a"\nmsgstr[1] "b"\n'
    for code in ("fr", "de"):
        write_catalogue(tmp_path / code, HEAD.replace("(n != 1)", "n!=1") + plural)

    assert compile_catalogue("de", [tmp_path, LOCALE])
    wanted = f"{tmp_path / 'fr' / CATALOGUE_PATH}:6: its plural forms are not those of {LOCALE}"
    with pytest.raises(ValueError, match=re.escape(wanted)) as raised:
        compile_catalogue("fr", [tmp_path, LOCALE])
    assert 'write "Plural-Forms: nplurals=2; plural=(n > 1)' in str(raised.value)


@pytest.mark.parametrize(
    ("folder", "code"), [("pt_BR", "pt-br"), ("PT_br", "pt_BR"), ("zh_Hant", "zh-Hant-TW")]
)
def test_a_folder_is_found_by_its_language(tmp_path: Path, folder: str, code: str) -> None:
    """However the tag is written, and for a region by its script."""
    write_catalogue(tmp_path / folder, f'{HEAD}msgid "Send"\nmsgstr "X"\n')

    assert (
        load_language(code, compile_catalogue(code, [tmp_path])).translate(sentence("Send")) == "X"
    )


def test_numbers_choose_forms() -> None:
    """In English, and by the rule of another language."""
    french = load_language("fr", compile_catalogue("fr", [LOCALE]))
    found = [counted("%(shown)s post", "%(shown)s posts", n, shown=n) for n in (0, 1, 1234)]

    assert found == ["0 posts", "1 post", "1,234 posts"]
    assert list(map(french.translate, found)) == ["0 article", "1 article", "1\u202f234 articles"]
    assert ENGLISH.translate("100 %") == "100 %"


@pytest.mark.parametrize("code", ["ar", "cy", "en", "fr", "ga", "ja", "kw", "lt", "mt", "pl", "sl"])
def test_scripts_get_every_form(code: str) -> None:
    """For any number, one of the samples takes the same form."""
    choose = Locale.parse(code).plural_form

    numbers = (*range(1001), 1_000_000)
    assert {choose(number) for number in numbers} == {choose(number) for number in PLURAL_SAMPLES}


def test_directions() -> None:
    """Directions of languages, and of the scripts that a tag may name."""
    for code in ("he", "ar-EG", "fa", "az-Arab", "ur_PK"):
        assert text_direction(code) == "rtl"
    for code in ("en", "", "ja", "ar-Latn", "hebr"):
        assert text_direction(code) == "ltr"
