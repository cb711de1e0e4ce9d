"""Names of emoji come out as GitHub shows them, wherever a reader meets them."""

import orjson
import pytest
from pymdownx import gemoji_db
from selectolax.lexbor import LexborHTMLParser

from site_build.markup.convert import Converter, Dialect
from tests.site_build.test_convert import convert
from tests.site_build.test_silent_mistakes import find_new
from tests.site_build.workbench import Workbench, find

HEART = "\u2764\ufe0f"


def show(markdown: str) -> str:
    """Return the text of a page as its readers see it."""
    return find(LexborHTMLParser(convert(markdown).html), "body").text().strip()


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (":tada:", "🎉"),
        ("a :heart: b, :tada::+1:!", f"a {HEART} b, 🎉👍!"),
        ("(:white_check_mark:) *:rocket:* [:eyes:](/a/)", "(✅) 🚀 👀"),
        ("すごい:tada:です", "すごい🎉です"),
        (":100: :1234:", "💯 🔢"),
        ("<b>:bug:</b>\n\n<div>:memo: <i>:tada:</i></div>", "🐛\n📝 🎉"),
        ("> [!NOTE]\n> :tada:", "Note\n🎉"),
        # What is none.
        (":no_such: :tada :TADA: : tada:", ":no_such: :tada :TADA: : tada:"),
        ("12:30:45 1:100:2 a:b:c std::o::x 00:ab:cd", "12:30:45 1:100:2 a:b:c std::o::x 00:ab:cd"),
        ("`:tada:` <code>:tada:</code>", ":tada: :tada:"),
        ("```\n:tada:\n```", ":tada:"),
        ("    :tada:", ":tada:"),
        ("&#58;tada: :heart: : a", f":tada: {HEART} : a"),
    ],
)
def test_names_are_shown_as_emoji(markdown: str, text: str) -> None:
    """A name that GitHub has is its sign, except in code, within a word, or with an entity."""
    assert show(markdown) == text
    assert find_new(markdown) == []


def test_formulas_and_attributes_keep_their_letters() -> None:
    """Text in a tag, an address, a comment or a formula is no name."""
    html = convert('<a title=":tada:" href="/:tada:/">a</a> ![:tada:](/a:tada:.png) $a:b:c$').html

    assert "🎉" not in html
    assert "🅱" not in html
    assert "🎉" not in convert("<!-- :tada: -->\n\n<script>':tada:'</script>").html


def test_every_name_of_github_is_known() -> None:
    """Every name, those that are only other names too, gives one sign and no letter."""
    names = [*gemoji_db.emoji, *gemoji_db.aliases]

    shown = show("\n\n".join(names)).split("\n")

    assert len(names) > 1800
    assert len(shown) == len(names)
    assert [each for each in shown if ":" in each] == []


def test_ids_of_headings_are_those_of_github() -> None:
    """A heading's id has the name's letters, as links on GitHub need; what is shown is the sign."""
    made = convert("## :rocket: Getting started\n\n## b\n\n[TOC]")

    page = LexborHTMLParser(made.html)
    assert find(page, "h2").attributes["id"] == "rocket-getting-started"
    assert find(page, "h2").text().startswith("🚀 Getting started")
    assert find(page, ".toc a").text() == "🚀 Getting started"
    assert '<a href="#rocket-getting-started">🚀 Getting started</a>' in made.toc


def test_a_site_with_its_own_extensions_has_none() -> None:
    """Names stay where a site chooses what Markdown means, and come with GitHub's rules."""
    plain, github = (
        Converter(Dialect("https://journal.test", names))
        for names in (("tables",), ("tables", "site_build.markup.github"))
    )

    assert convert(":tada:", plain).html == "<p>:tada:</p>"
    assert convert(":tada:", github).html == "<p>🎉</p>"


@pytest.mark.size("test")
def test_emoji_are_in_every_form_of_a_text(empty_bench: Workbench) -> None:
    """Page, feeds, API and description have the sign; title and Markdown what was typed."""
    empty_bench.post("a", text="Words :tada: of `:bug:`.", title="'A :tada: title'")

    site = empty_bench.build("2030-01-01T00:00:00Z") / "site"

    page = LexborHTMLParser((site / "journal/a/index.html").read_text())
    assert find(page, "article .prose p").text() == "Words 🎉 of :bug:."
    assert find(page, "h1").text().strip() == "A :tada: title"
    assert find(page, "meta[name=description]").attributes["content"] == "Words 🎉 of :bug:."
    (item,) = orjson.loads((site / "feed.json").read_bytes())["items"]
    assert item["title"] == "A :tada: title"
    assert item["content_html"].strip() == "<p>Words 🎉 of <code>:bug:</code>.</p>"
    assert "Words 🎉 of" in (site / "feed.xml").read_text()
    assert "Words :tada: of `:bug:`." in (site / "journal/a/index.md").read_text()
    assert "<p>Words 🎉 of" in (site.parent / "posts.json").read_text()
