"""The measures of a text, against counts that were made by other means."""

from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path

import markdown
import pytest

from edge_api.analysis.document import Block, ParsedDocument
from edge_api.analysis.languages import LANGUAGES, guess_language, language_of
from edge_api.analysis.metrics import measure, sentence_lengths, tokenize
from edge_api.analysis.parse import parse_markdown, parse_text
from edge_api.analysis.report import apply_rules, gather_facts
from edge_api.schema.reading_time import reading_minutes
from tests.edge.analysis.corpus import SETS, body_of

pytestmark = pytest.mark.one_engine

POSTS = [path for paths in SETS.values() for path in paths]
NAMES = [path.stem for path in POSTS]


def spell_words(text: str) -> Iterator[str]:
    """Yield the words of a text, letter by letter."""
    word = ""
    for character, following in zip(text, f"{text[1:]} ", strict=True):
        is_joint = character in "'\u2019-" and word and (following.isalnum() or following == "_")
        is_point = character in ".,:" and word[-1:].isdigit() and following.isdigit()
        if character.isalnum() or character == "_" or is_joint or is_point:
            word += character
        elif word:
            yield word
            word = ""
    if word:
        yield word


def paragraphs_of(text: str) -> list[str]:
    """Return the paragraphs of plain text: lines between empty lines."""
    runs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    joined = (" ".join(lines) for is_text, lines in runs if is_text)
    return [paragraph for paragraph in joined if any(spell_words(paragraph))]


def count_marks(text: str) -> int:
    """Return about how many sentences a text has: marks before a space, and its end."""
    tokens = text.split()
    ends = [token.rstrip("\"'\u201d\u2019)]*_")[-1:] in list(".!?\u2026") for token in tokens]
    return max(1, sum(ends[:-1]) + 1)


class Prose(HTMLParser):
    """Gathers the text of HTML except for blocks of code."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        """Begin an element."""
        self._code += tag == "pre"
        self.parts.append(" " if tag not in {"em", "strong", "code", "a", "span"} else "")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        self._code -= tag == "pre"

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self._code:
            self.parts.append(data)


@pytest.mark.parametrize("path", POSTS, ids=NAMES)
def test_text_is_counted(path: Path) -> None:
    """Words, paragraphs and long words are those of a count letter by letter."""
    text = body_of(path)
    words = list(spell_words(text))
    found = measure(parse_text(text))

    assert found.words == len(words)
    assert found.paragraphs == len(paragraphs_of(text))
    assert found.reading_minutes == reading_minutes(text), "as the post itself says"
    assert found.avg_sentence_words == round(found.words / found.sentences, 1)
    long = sum(len(word) > 6 and not set(word) <= set("0123456789.,:-_") for word in words)
    assert found.lix == round(len(words) / found.sentences + 100 * long / len(words), 1)
    sentences = sum(map(count_marks, paragraphs_of(text)))
    assert abs(found.sentences - sentences) <= max(3, 0.1 * sentences)


@pytest.mark.parametrize("path", POSTS, ids=NAMES)
def test_markdown_is_counted(path: Path) -> None:
    """The words are those that another Markdown library and another HTML parser leave."""
    text = body_of(path)
    other = Prose()
    other.feed(markdown.markdown(text, extensions=["tables", "fenced_code", "sane_lists"]))
    words = list(spell_words("".join(other.parts)))
    found = measure(parse_markdown(text))

    assert abs(found.words - len(words)) <= 0.02 * len(words)
    assert found.reading_minutes == reading_minutes(text), "as the post itself says"


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("One two. Three!", [2, 1]),
        ("Dr. Lee met J. R. Moss, i.e. the binder. He left.", [10, 2]),
        ("It cost 3.50 a page. Really?! Yes\u2026 Perhaps", [5, 1, 1, 1]),
        ("It was I. Then we left.", [3, 3]),
        ("It was H. G. Wells. He said no. Then he left, see no. 5.", [5, 3, 6]),
        (
            "\u201cStop!\u201d he said. \u201cWhy?\u201d she asked. \u201cHo!\u201d They left.",
            [3, 3, 1, 2],
        ),
        ("Well\u2026 perhaps. Why? because.", [2, 1, 1]),
        ("\u0647\u0644 \u0647\u0630\u0627\u061f \u0646\u0639\u0645", [2, 1]),
        ("\u092f\u0939 \u0915\u093f\u0924\u093e\u092c\u0964 \u092f\u0939", [2, 1]),
        ('He said: "Stop." Then he left.', [3, 3]),
        ("no capital. after the stop", [5]),
        ("In 1999. Then more.", [2, 2]),
        ("...", []),
        ("", []),
        ("\u672c\u3067\u3059\u3002\u7d42\u308f\u308a\u3002", [1, 1]),
    ],
)
def test_sentences_are_split(text: str, lengths: list[int]) -> None:
    """A stop may belong to an abbreviation, an initial or a number."""
    assert list(sentence_lengths(text, language_of("en"))) == lengths


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Version 2.0 cost $5.00 of 3,000 at 10:30.", "Version 2.0 cost 5.00 of 3,000 at 10:30"),
        ("v1.85.1, or 1, 2, 3. 4", "v1.85.1 or 1 2 3 4"),
        ("well-known don\u2019t and/or", "well-known don\u2019t and or"),
        ("\u0915\u093f\u0924\u093e\u092c cafe\u0301", "\u0915\u093f\u0924\u093e\u092c cafe\u0301"),
    ],
)
def test_words_are_split(text: str, words: str) -> None:
    """A number is one word, whatever is in it; marks on letters part nothing."""
    assert tokenize(text) == words.split()


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("\u9019\u662f\u4e00\u672c\u66f8\u3002\u4ed6\u5728\u8b80\u66f8\u3002" * 200, None),
        ("\u3053\u308c\u306f\u672c\u3067\u3059\u3002 " * 200, None),
        (
            "\u0e19\u0e35\u0e48\u0e04\u0e37\u0e2d\u0e2b\u0e19\u0e31\u0e07\u0e2a\u0e37\u0e2d " * 200,
            None,
        ),
        ("kore wa hon desu. " * 50, "ja"),
    ],
)
def test_lix_needs_spaces_between_words(text: str, tag: str | None) -> None:
    """For a language without them it is None, and costs no points."""
    document = parse_text(text)
    metrics = measure(document, tag)

    assert metrics.lix is None
    codes = {each.code for each in apply_rules(gather_facts(document, metrics, None))}
    assert "lix" not in codes
    assert "long-sentences" in codes


def test_lix_is_measured_despite_a_word_of_another_script() -> None:
    """Korean has spaces, and English has them around a name in Han."""
    korean = "\uc774\uac83\uc740 \ucc45\uc785\ub2c8\ub2e4. " * 60
    english = "The name of this old temple in the hills is \u6e05\u6c34\u5bfa. " * 10

    assert measure(parse_text(korean)).lix is not None
    assert measure(parse_text(english)).lix is not None


def test_the_formulas_are_those_of_their_authors() -> None:
    """Flesch's and Amstad's reading ease, and LIX, worked out by hand."""
    block = Block("paragraph", "The cat sat on the mat. The reader understood everything.")
    english = measure(ParsedDocument("text", None, (block,)), "en")

    assert (english.words, english.sentences) == (10, 2)
    assert english.lix == round(10 / 2 + 100 * 2 / 10, 1)
    syllables = 6 + 1 + 2 + 2 + 3  # the-cat-sat-on-the-mat the read-er un-der-stood ev-ery-thing
    assert english.flesch_reading_ease is not None
    by_hand = 206.835 - 1.015 * 5 - 84.6 * (syllables + 1) / 10
    assert abs(english.flesch_reading_ease - by_hand) <= 8.46, "within one syllable"
    german = measure(ParsedDocument("text", None, (Block("paragraph", "Das Buch ist da."),)), "de")
    assert german.flesch_reading_ease == 180.0 - 4 - 58.5
    assert measure(ParsedDocument("text", None, (block,)), "fi").flesch_reading_ease is None


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("en", "The edge of the book was painted, and then it was gilded by the binder."),
        ("de", "Der Rand des Buches wurde bemalt und dann von dem Binder vergoldet."),
        (
            "fr",
            "Le bord du livre est peint, puis il est dor\u00e9 par le relieur dans son atelier.",
        ),
        ("es", "El borde del libro se pinta y despu\u00e9s lo dora el encuadernador en su taller."),
        (
            "it",
            "Il bordo del libro \u00e8 dipinto e poi viene dorato dal rilegatore nella bottega.",
        ),
        ("nl", "De rand van het boek werd geschilderd en daarna door de binder verguld."),
        ("pt", "A borda do livro \u00e9 pintada e depois ela \u00e9 dourada pelo encadernador."),
        ("da", "Det var ikke bogen, der blev v\u00e6k, men hun gik ud efter noget af det andet."),
        ("nb", "Det var ikke boken som ble borte, men hun gikk ut etter noe av det jeg s\u00e5."),
        ("pl", "Kot siedzi na macie i \u015bpi. To jest pi\u0119kny dzie\u0144 dla dzieci."),
        ("ca", "El gat \u00e9s a la catifa i dorm amb els altres."),
        (
            "sv",
            "Bokens kant m\u00e5lades och sedan f\u00f6rgylldes den av bokbindaren som var glad.",
        ),
    ],
)
def test_languages_are_detected(tag: str, text: str) -> None:
    """By the words that are commonest in each."""
    assert guess_language(text.split()) == tag


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "y y y y",
        "The binder Xyzzy",
        "\u042d\u0442\u043e a \u043a\u043d\u0438\u0433\u0430",
        "the \u043a\u043d\u0438\u0433\u0430 of \u0442\u043e\u043c",
        "Kissa istuu matolla ja nukkuu. Se on kaunis p\u00e4iv\u00e4 on se ja on.",
        "Der er en hund, og den er ikke stor. Det var en fin dag, og vi skal se den igen.",
        "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda of the Mu Nu Xi",
        "",
    ],
)
def test_a_coincidence_is_no_detected_language(text: str) -> None:
    """One common word, few among many, as many of another language, or letters of another."""
    assert guess_language(tokenize(text)) == "und"


def test_each_language_is_tried() -> None:
    """The table above has every language that is known."""
    cases = test_languages_are_detected.pytestmark[0].args[1]  # type: ignore[attr-defined]

    assert {tag for tag, _ in cases} == set(LANGUAGES)
