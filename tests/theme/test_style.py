"""The style sheet: small, of this site alone, and without motion."""

import re
from pathlib import Path

import brotli
import jinja2

from site_build.images.card import CHROMA, HUES, LIGHTNESS

ROOT = Path(__file__).resolve().parent.parent.parent
BUDGET = 14_000
"""Bytes of CSS that a page may load, as brotli."""

MADE_ELSEWHERE = re.compile(
    r"hue-\d+|heading-anchor|align-\w+|plate|footnote\S*|highlight|linenos"
    r"|admonition\S*|note|info|seealso|tip|hint|success|warning|caution|attention|important|danger"
    r"|task-list-item|error|bug|err|hll|[a-z]{1,2}\d?|cpf|table-scroll"
    r"|code|copy|unseen|series|related|search-\w+|snippet|minutes-\d+|part-\d|shape-\d+"
    r"|pictures|enlarged?|sidenote|beside|amount|day|night"
)
"""Classes that the conversion of texts, Pygments, scripts and the tags' hues bring."""


OF_OTHER_THEMES = {"body"}
"""Classes of Pelican's own themes, around what the templates lend to these."""


def without_comments(style: str) -> str:
    """Return the style sheet's rules alone."""
    return re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)


def selectors_of(style: str) -> set[str]:
    """Return every class that a selector names."""
    return {
        name
        for selector in re.findall(r"([^{}]+)\{", without_comments(style))
        if not selector.strip().startswith("@")
        for name in re.findall(r"\.([a-z][\w-]*)", selector)
    }


def classes_of(templates: jinja2.Environment) -> set[str]:
    """Return every class that a template names literally."""
    return {
        name
        for template in templates.list_templates()
        if not template.startswith("docs")  # they have a sheet besides: test_docs_style.py
        for value in re.findall(r'class="([^"]*)"', source_of(templates, template))
        for name in re.sub(r"\{\{.*?\}\}", "", value).split()
    }


def source_of(templates: jinja2.Environment, name: str) -> str:
    """Return a template's text."""
    assert templates.loader
    return templates.loader.get_source(templates, name)[0]


def test_style_is_small(style: str) -> None:
    """The style sheet stays within its budget."""
    assert len(brotli.compress(style.encode(), quality=5)) <= BUDGET


def test_style_asks_nobody(style: str) -> None:
    """The style sheet loads its faces from beside it, and nothing from anybody else."""
    assert re.findall(r"url\(\"([^\"]*)\"\)|url\(|@import|https?:", without_comments(style)) == [
        "fonts/serif-roman.woff2",
        "fonts/serif-more.woff2",
        "fonts/serif-italic.woff2",
        "fonts/serif-italic-more.woff2",
    ]


def test_nothing_moves(style: str) -> None:
    """Pages and leaves alone move, and only without `prefers-reduced-motion`."""
    rules = without_comments(style)
    wanted = re.search(
        r"@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}", rules, re.DOTALL
    )
    moving = r"(?:animation|transition|(?<!over)scroll-behavior)\b"

    assert wanted
    assert "navigation: auto" in wanted[0]
    assert re.findall(moving, rules.replace(wanted[0], "")) == []


def test_faces_never_shift_the_text(style: str) -> None:
    """A face that comes late is left for the next page, and each has all the weights in use."""
    faces = re.findall(r"@font-face \{(.*?)\}", without_comments(style), re.DOTALL)
    loaded = [face for face in faces if "url(" in face]

    assert len(loaded) == 4
    assert all("font-display: optional" in face for face in loaded)
    assert all("size-adjust" in face for face in faces if "local(" in face)
    assert all("font-weight: 400 600;" in face for face in loaded)
    assert set(re.findall(r"font-weight: (\d+);", without_comments(style))) <= {"400", "600"}


def test_braces_match(style: str) -> None:
    """Every rule is closed, so that none swallows the next."""
    depth = 0
    for brace in re.findall(r"[{}]", without_comments(style)):
        depth += 1 if brace == "{" else -1
        assert depth in {0, 1, 2}
    assert depth == 0


def test_directions_are_logical(style: str) -> None:
    """Margins, paddings, borders and places are logical, so that right-to-left pages mirror."""
    physical = re.compile(r"(?:margin|padding|border)-(?:left|right)\b|(?:^|[\s;{])(?:left|right):")

    assert physical.findall(without_comments(style)) == []


def test_every_class_is_styled(style: str, templates: jinja2.Environment) -> None:
    """A class in a template has a rule, and a rule's class is in a template."""
    used, styled = classes_of(templates), selectors_of(style)

    of_programs = {name for name in used if re.match(r"(?:h|p|u|dt|e)-", name)}  # microformats
    assert used - styled - of_programs == OF_OTHER_THEMES
    assert {name for name in styled - used if not MADE_ELSEWHERE.fullmatch(name)} == set()


def test_hues_of_style_and_cards_agree(style: str) -> None:
    """The style sheet paints exactly the hues that tags have, in the paint of the cards."""
    painted = dict(re.findall(r"^\.hue-(\d+) \{ --hue: ([\d.]+); \}", style, re.MULTILINE))
    by_day = re.search(r"--paint: light-dark\(oklch\(([\d.]+) ([\d.]+) ", style)

    assert {int(number): float(angle) for number, angle in painted.items()} == {
        number: number * 360 / HUES for number in range(HUES)
    }
    assert by_day
    assert (float(by_day[1]), float(by_day[2])) == (LIGHTNESS, CHROMA)
