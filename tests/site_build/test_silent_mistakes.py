"""Markup of another program, or with a character missing, is reported where it was typed."""

import pytest

from tests.site_build.test_check import said, take_note

TYPED = "stays as it was typed"
LOST = "is no heading, but shown as typed"
TABLE = "this is no table, but shown as typed"
ROW = f"{TABLE}: no line of hyphens is below the first row"
WIDTH = "this line has not as many columns as the row right above it"
NEW = ("as typed", "as it was typed", "is never used", "GitHub draws")


def find_new(markdown: str) -> list[str]:
    """Return the notes of the kinds that this file is about, as lines."""
    return [note for note in take_note(markdown) if any(words in note for words in NEW)]


@pytest.mark.parametrize(
    ("markdown", "notes"),
    [
        # Tables.
        ("| a | b |\n| 1 | 2 |", [f"1:1 {ROW}"]),
        ("Words\n| a | b |\n| 1 | 2 |", [f"2:1 {ROW}"]),
        ("| a | b |", [f"1:1 {ROW}"]),
        ("| a | b |\n|---|\n| 1 | 2 |", [f"2:1 {TABLE}: {WIDTH}"]),
        ("a | b | c\n--- | ---\n1 | 2 | 3", [f"2:1 {TABLE}: {WIDTH}"]),
        ("> | a | b \\| c |\n> |--|:-:|--|", [f"2:3 {TABLE}: {WIDTH}"]),
        (
            "| a | b |\n\n|---|---|\n| 1 | 2 |",
            [
                f"1:1 {ROW}",
                f"3:1 {TABLE}: this line has no row of headings right above it",
            ],
        ),
        # Headings.
        ("#NoSpace", [f"1:1 `#NoSpace` {LOST}"]),
        ("##Über *uns*\nwords", [f"1:1 `##Über *uns*` {LOST}"]),
        ("Words\n####1. Deep", [f"2:1 `####1. Deep` {LOST}"]),
        ("- a\n\n  ##标题", [f"3:3 `##标题` {LOST}"]),
        # Notes.
        ("a[^1]\n\n[^1]: b\n[^2]: c", ["4:1 the note `[^2]` is never used"]),
        ("a[^1]\n\n[^1]: b\n[^c-e]: f", ["4:1 the note `[^c-e]` is never used"]),
        # Words of other programs.
        (
            "a ==b c== d ==e==",
            ["1:3 `==b c==` stays as it was typed", "1:13 `==e==` stays as it was typed"],
        ),
        ("==*b*== `==b==`", ["1:1 `==*b*==` stays as it was typed"]),
        ("`[[b]]` and [[b]]", ["1:13 `[[b]]` stays as it was typed"]),
        (
            "a\n[[Wide margins|b]] ![[c.png]]",
            [
                "2:1 `[[Wide margins|b]]` stays as it was typed",
                "2:20 `![[c.png]]` stays as it was typed",
            ],
        ),
        ("## [[b]]", ["1:4 `[[b]]` stays as it was typed"]),
        ("| a |\n|---|\n| {{ b }} |", [f"3:3 `{{{{ b }}}}` {TYPED}"]),
        ("{{< youtube abc >}}", [f"1:1 `{{{{< youtube abc >}}}}` {TYPED}"]),
        ("a {{<b c>}} {{</b>}}", [f"1:3 `{{{{<b c>}}}}` {TYPED}"]),
        ("{{% a %}}\n\nb\n\n{{% /a %}}", [f"1:1 `{{{{% a %}}}}` {TYPED}"]),
        ("{% raw %} a {% endraw %}", [f"1:1 `{{% raw %}}` {TYPED}"]),
        (
            "[a]({{ site.url }}{% link b.md %})",
            [f"1:5 `{{{{ site.url }}}}{{% link b.md %}}` {TYPED}"],
        ),
        ("<div>\n<b>{{ a }}</b>\n</div>", [f"2:4 `{{{{ a }}}}` {TYPED}"]),
        ("{% include a.html\n  b=c %}", [f"1:1 `{{% include a.html b=c %}}` {TYPED}"]),
        # Drawings.
        (
            "```mermaid\ngraph TD\n```",
            ["1:1 GitHub draws this diagram, and here it is shown as code"],
        ),
        (
            "- a\n\n  ~~~ mermaid\n  b\n  ~~~",
            ["3:1 GitHub draws this diagram, and here it is shown as code"],
        ),
        # Two at once, with what was always named.
        (
            "##A [[b]]\n| a | b |\n| 1 | 2 |\n\n![](c.png)",
            [
                "1:1 `##A [[b]]` " + LOST,
                "1:5 `[[b]]` stays as it was typed",
                f"2:1 {ROW}",
                "5:1 the image has no alt text",
            ],
        ),
    ],
)
def test_unconverted_markup_is_reported(markdown: str, notes: list[str]) -> None:
    """Each is named with its line and column, once, however many others there are."""
    assert said(markdown) == notes


@pytest.mark.parametrize(
    "markdown",
    [
        "`==a==` ``[[b]]`` `{{ c }}` `{% d %}`",
        "```\n==a== [[b]] {{ c }} {% d %}\n##e\n| f | g |\n```",
        "    ==a== [[b]] {{ c }} {% d %}\n    ##e\n    | f | g |",
        "- a\n\n      {{ b }} [[c]]",
        r"\==a== \[[b]] \{{ c }} {\{ c }} \{% d %} \##e",
        "\\##a\n\\#b",
        "$x_{{a}} == [[b]]$ and $$\n{{a}} == {{b}}\n$$",
        '<a title="{{ b }} ==c== [[d]]" href="/">e</a>',
        "<code>{{ a }}</code> <kbd>[[b]]</kbd> <pre>==c==</pre>",
        "<pre>\n{{ a }}\n\n{% b %}\n</pre>",
        "<div><code>{{ a }}</code></div>\n<!-- {{ b }} [[c]] -->",
        "<!--\n{{ a }}\n\n[[b]]\n-->",
        "[[a]][b] [[c]](/d/) [[e](/f/)] [[g]]\n\n[b]: /h/\n[g]: /i/",
        "a == b and c == d; a==b or c==d; a == b==c ===d=== ==> e ==>",
        "[[1, 2], [3, 4]] [[0]] a[[i]] [[ -f x ]]",
        "${{ secrets.A }}",
        "#5 is no heading\n\n#python #tips\n\n#!/bin/sh\n\n# Words\n\nmore\n#TIL words",
        "a | b\nc | d\n\n|x| + |y|\nwords\n\n| a line block\n| of poetry",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "| a |\n|---|",
        "a[^1] b[^2]\n\n[^1]: c[^3]\n[^2]: d\n[^3]: e",
        "`[^1]: a`\n\n```\n[^2]: b\n```",
        "```text\ngraph\n```\n\n```js\nmermaid\n```",
    ],
)
def test_intended_characters_are_not_reported(markdown: str) -> None:
    """Code, formulas, attributes, comments, escaped signs and plain words raise nothing new."""
    assert find_new(markdown) == []
