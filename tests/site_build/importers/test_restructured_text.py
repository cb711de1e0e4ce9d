"""reStructuredText as Markdown."""

import pytest

from site_build.importers.restructured_text import read_restructured_text


def convert(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the Markdown of a text, and lines and sentences of its findings."""
    found: list[tuple[int, str]] = []
    _, body, _ = read_restructured_text(text, lambda line, what, _: found.append((line, what)))
    return body.strip(), found


def test_fields_of_the_head() -> None:
    """Title and fields are read, of both kinds, and are not in the body."""
    head, body, _ = read_restructured_text(
        "A *Post*\n########\n\n:date: 2020-01-02\n:Tags: a, b\n:authors: Ann; Bob\n"
        ":summary:\n    Two\n    lines\n\nWords.\n",
        lambda *_: None,
    )

    assert head == {
        "title": "A Post",
        "date": "2020-01-02",
        "tags": "a, b",
        "authors": "Ann; Bob",
        "summary": "Two\nlines",
    }
    assert body == "Words.\n"


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("*a* **b** ``c`` :sub:`d` :kbd:`Ctrl`", "*a* **b** `c` <sub>d</sub> <kbd>Ctrl</kbd>"),
        ("1 \\* 2 <b> [x] $5 a_b", "1 \\* 2 \\<b> \\[x\\] \\$5 a_b"),
        (
            "`t <{filename}/a.rst>`_ and link_\n\n.. _link: /x y",
            "[t](%7Bfilename%7D/a.rst) and [link](/xy)",
        ),
        ("https://a.example/x_y", "<https://a.example/x_y>"),
        ("- a\n- b\n\n  - c", "- a\n- b\n\n  - c"),
        ("- a\n- b", "- a\n- b"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("Term\n   Text.\n\n   More.", "Term\n:   Text.\n\n    More."),
        (".. warning:: Hot\n\n   - tea", "> [!WARNING]\n> Hot\n>\n> - tea"),
        (".. admonition:: Own\n\n   Text.", "> [!NOTE]\n> **Own**\n>\n> Text."),
        (".. code-block:: python\n   :linenos: table\n\n   a = 1", "```python\na = 1\n```"),
        ("::\n\n   ```", "````\n```\n````"),
        (".. image:: |static|/a.png\n   :alt: A\n   :target: /b", "[![A](%7Cstatic%7C/a.png)](/b)"),
        (".. image:: a.png\n\n.. image:: b.png", "![](a.png)\n\n![](b.png)"),
        (".. figure:: /a.png\n\n   A *cat*\n\n   Legend.", "![](/a.png)\n*A cat*\n\nLegend."),
        ("| one\n| two", "one  \ntwo"),
        ("=  ===\na  b|c\n=  ===\n1  2\n=  ===", "| a | b\\|c |\n| --- | --- |\n| 1 | 2 |"),
        (":math:`x^2`\n\n.. math::\n\n   y", "$x^2$\n\n$$y$$"),
        (
            "A [#n]_ b.\n\n.. [#n] Note.\n\n   More.",
            "A [^1] b.\n\n   \n\n[^1]: Note.\n    \n    More.",
        ),
        (".. raw:: html\n\n   <b>x</b>\n\n.. raw:: latex\n\n   y", "**x**"),
        ("A |s|.\n\n.. |s| replace:: *b*\n\n.. no comment", "A *b*."),
        ("Quote:\n\n   To be.\n\n   -- Hamlet", "Quote:\n\n> To be.\n>\n> —Hamlet"),
        ("One\n\n----\n\nTwo", "One\n\n---\n\nTwo"),
        ("A\n=\n\nx\n\nB\n=\n\ny\n\nC\n-\n\nz", "## A\n\nx\n\n## B\n\ny\n\n### C\n\nz"),
    ],
)
def test_each_construct_becomes_markdown(source: str, markdown: str) -> None:
    """Each form of reStructuredText has one of Markdown, and none is a finding."""
    assert convert(source) == (markdown, [])


def test_unknown_directives_are_reported() -> None:
    """Unknown roles and directives leave words or a link, and are named once by their line."""
    body, found = convert(
        "A :ref:`text <place>` here.\n\n.. youtube:: abc\n   :width: 400\n\n"
        ".. gallery:: cats\n\n   Inner words.\n"
    )

    assert body == "A text here.\n\n<https://www.youtube.com/watch?v=abc>\n\ncats\n\nInner words."
    assert [(line, what.split()[0]) for line, what in found] == [
        (1, "ref"),
        (3, "youtube"),
        (6, "gallery"),
    ]


def test_undefined_references_are_reported() -> None:
    """A substitution that nothing defines stays as it was typed, without a message below."""
    body, _ = convert("A |none| here.\n")

    assert body == "A |none| here."


def test_no_file_is_opened() -> None:
    """A directive with a file or an address is refused, and named."""
    body, found = convert(
        ".. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n\n"
        ".. csv-table:: t\n   :file: /etc/passwd\n"
    )

    assert "root:" not in body
    assert [what.split()[0] for _, what in found] == ["include", "raw", "csv-table"]


def test_broken_markup_is_reported() -> None:
    """A table that cannot be read is shown as it was written, and named."""
    body, found = convert("=  =\na  bb\n=\n\n=  =\n\nAfter.\n")

    assert "a  bb" in body
    assert "After." in body
    assert found
