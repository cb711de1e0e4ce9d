"""Heads of other systems, in YAML, TOML and JSON, well written or not."""

from datetime import UTC, datetime

import pytest

from site_build.importers.heads import (
    HeadError,
    read_date,
    read_flag,
    read_tags,
    read_yaml,
    split_head,
)


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: A\ndate: 2020-01-02\n---\nBody\n",
        "---\ntitle: A\ndate: 2020-01-02\n...\nBody\n",
        '+++\ntitle = "A"\ndate = 2020-01-02\n+++\nBody\n',
        '{"title": "A",\n"date": "2020-01-02"\n}\nBody\n',
        ';;;\n"title": "A",\n"date": "2020-01-02"\n;;;\nBody\n',
        '---json\n{"title": "A",\n"date": "2020-01-02"}\n---\nBody\n',
    ],
)
def test_front_matter_of_each_form(text: str) -> None:
    """Each form gives the same head, and the line of the body."""
    head, body, line = split_head(text)
    assert (head, body) == ({"title": "A", "date": "2020-01-02"}, "Body\n")
    assert text.split("\n")[line - 1] == "Body"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("Ruby: a love story", "Ruby: a love story"),
        ('"Ruby" and "C"', '"Ruby" and "C"'),
        ('"An "inner" quote"', 'An "inner" quote'),
        ('"never closed', '"never closed'),
        ("@home", "@home"),
        ("[RFC] Links", "[RFC] Links"),
        ('"C:\\path"', "C:\\path"),
        ("*loud* words", "*loud* words"),
        ("2020", "2020"),
        ("no", "no"),
        ("{{ page.name }}", "{{ page.name }}"),
        ("!binary x", "x"),
        ("A\x08B", "AB"),
    ],
)
def test_titles_of_front_matter(value: str, read: str) -> None:
    """A title is read as its author meant it, and the lines around it stay."""
    head, _, _ = split_head(f"---\nlayout: post\ntitle: {value}\ntags: [a, b]\n---\n")
    assert head == {"layout": "post", "title": read, "tags": ["a", "b"]}


def test_tabs_and_duplicates() -> None:
    """Tabs indent, and the last of two equal keys counts."""
    assert read_yaml("a: 1\nb:\n\t- x\n\t- y\na: 2\n") == {"a": "2", "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\ntitle: A\nnonsense\nb: c\n---\n", 3),
        ("+++\na = 1\nb = \n+++\n", 3),
        ('{"a": 1,\n"b": \n}\n', 3),
        ('{"a": 1,\n"b": 2', 1),
        ("---\ntitle: A\n\nThe body\n", 1),
        ("---\na: " + "[" * 100_000 + "\n---\n", 2),
        ("+++\na = " + "[" * 100_000 + "\n+++\n", 2),
        ("---\na: &a [x]\n" + "".join(f"b{n}: [*a, *a]\n" for n in range(40)) + "---\n", 2),
        ("---\n" + "a: 1\n" * 200_000 + "---\n", 2),
    ],
)
def test_unreadable_front_matter(text: str, line: int) -> None:
    """A head that is broken or hostile is refused with its line."""
    with pytest.raises(HeadError, match=f"line {line}: ") as caught:
        split_head(text)
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["Body\n", "---\n\nBody\n\n---\n\nMore\n", "---\nBody", ""])
def test_texts_without_front_matter(text: str) -> None:
    """A text without a head, or with a rule as its first line, is a body alone."""
    assert split_head(text) == ({}, text, 1)


def test_values_of_front_matter() -> None:
    """Tags, flags and dates in the forms that people write."""
    assert read_tags("a, b c ,a") == read_tags(["a", "b c", None, "#a"]) == ["a", "b c"]
    assert read_tags("a b", None) == ["a", "b"]
    assert read_tags(None) == read_tags("") == []
    assert [read_flag(value) for value in ("Yes", True, "false", None)] == [
        True,
        True,
        False,
        False,
    ]
    assert read_date("2020-01-02T03:04:05Z") == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read_date("2020-01-02 05:04:05 +0200") == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read_date("2020-01-02 05:04") == datetime(2020, 1, 2, 5, 4)  # noqa: DTZ001
    assert read_date("2020-13-45") is read_date("soon") is read_date(None) is None


def test_a_mark_of_no_system() -> None:
    """Text that only looks like the begin of a head is no head."""
    text = "+++json\n{}\n+++\nWords\n"

    assert split_head(text) == ({}, text, 1)
