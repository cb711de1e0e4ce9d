"""Reading one file: what becomes a document, and what is said of a head that cannot."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import frontmatter
import pytest
import yaml
from frontmatter.default_handlers import YAMLHandler
from hypothesis import given, settings
from hypothesis import strategies as st

from site_build.content.document import LARGEST_FILE, read_document
from site_build.site import Alias, Document
from tests.shared_material import find_posts
from tests.sizes import scaled

HEAD = "title: Hello\nslug: hello\ndate: 2026-03-01\n"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def post(head: str = HEAD, body: str = "Words.\n") -> bytes:
    """Return the bytes of a file with that head and body."""
    return f"---\n{head}---\n{body}".encode()


def read(raw: bytes, path: str = "posts/a.md") -> Document:
    """Return the document that `raw` gives, which must have no error."""
    document, findings = read_document(path, raw)
    assert [each for each in findings if each.severity == "error"] == []
    assert document
    return document


def list_findings(raw: bytes, path: str = "posts/a.md") -> list[str]:
    """Return the findings about `raw`, without the path."""
    return [str(finding).removeprefix(f"{path}:") for finding in read_document(path, raw)[1]]


def test_a_whole_head() -> None:
    """Every key of the front matter reaches the document."""
    raw = post(
        HEAD.replace("2026-03-01", "2026-03-01T13:00:00+01:00")
        + "updated: 2026-04-01\ntags: [one, Two words]\ndescription: What it is.\n"
        + "excerpt: A taste.\nstatus: draft\nlang: en-GB\nauthor: Ada\n"
        + "aliases: [hi, /2019/hi.html]\n",
        "\n\nFirst.\n\nSecond.\n\n\n",
    )

    assert read(raw) == Document(
        path="posts/a.md",
        kind="post",
        slug="hello",
        address="journal/hello/",
        title="Hello",
        description="What it is.",
        excerpt="A taste.",
        published=NOON,
        updated=datetime(2026, 4, 1, tzinfo=UTC),
        tags=("one", "Two words"),
        lang="en-GB",
        draft=True,
        markdown="First.\n\nSecond.\n",
        body_line=16,
        digest=hashlib.sha256(raw).hexdigest(),
        slug_at=(3, 7),
        author="Ada",
        category="posts",
        aliases=(Alias("journal/hi/", "hi", 12, 11), Alias("2019/hi.html", "", 12, 15)),
    )


def test_a_page_needs_no_date() -> None:
    """A file below pages/ is a page, and without a date it carries the epoch."""
    page = read(post("title: About\nslug: about\n"), "pages/about.md")

    assert (page.kind, page.published) == ("page", datetime(1970, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("day", ["2026-03-01", "'2026-03-01'", "' 2026-03-01 '"])
def test_a_revision_on_the_day_of_publication_needs_no_time(day: str) -> None:
    """A bare day is that day and not its midnight; an instant before the publication is refused."""
    head = HEAD.replace("2026-03-01", "2026-03-01T08:00:00Z")
    document, _ = read_document("posts/a.md", post(f"{head}updated: {day}\n"))
    _, findings = read_document("posts/a.md", post(f"{head}updated: 2026-03-01T07:00:00Z\n"))

    assert document is not None
    assert document.updated == document.published
    assert "lies before `date`" in findings[0].message


@pytest.mark.parametrize(
    "said",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01 12:00:00",
        "'2026-03-01T12:00'",
        "2026-03-01T13:00:00+01:00",
        '"2026-03-01 12:00:00.000000"',
        "2026-03-01t12:00:00z",
    ],
)
def test_forms_of_an_instant(said: str) -> None:
    """An instant may be a YAML timestamp or text, with a zone or without one, which is UTC."""
    assert read(post(HEAD.replace("2026-03-01", said))).published == NOON


@pytest.mark.parametrize("start", ["\ufeff", "\n\n", "\ufeff\r\n"])
def test_byte_order_mark_and_line_ends(start: str) -> None:
    """A byte order mark, Windows line ends and blank lines before the head change nothing."""
    raw = start.encode() + post(body="One.\n\nTwo.\n").replace(b"\n", b"\r\n")

    assert read(raw).markdown == "One.\n\nTwo.\n"


def test_indentation_of_the_first_line_is_kept() -> None:
    """A body that begins with indented code keeps its indentation."""
    assert read(post(body="\n    code\n")).markdown == "    code\n"


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("# Heading\n\nThe *first* [words](https://a.example) `here`.\n\nMore.\n", None),
        ("```\ncode\n```\n\n> quoted\n\nThe *first* [words][x] `here`.\n\n[x]: /y\n", None),
        ("10<sup>6</sup> words.[^1]\n\n[^1]: Note.\n", "106 words."),
        ("", "Hello"),
        ("- only\n- a list\n", "Hello"),
        ("word " * 100, " ".join(["word"] * 32) + "\u2026"),
    ],
)
def test_description_from_the_text(body: str, description: str | None) -> None:
    """Without a description the first paragraph gives one, as plain text, cut between words."""
    document = read(post(body=body))

    assert document.description == (description or "The first words here.")
    assert document.excerpt == document.description
    assert len(document.description) <= 160


def test_summary_is_another_name_for_description() -> None:
    """The key `summary`, as other generators have it, gives the description."""
    assert read(post(f"{HEAD}summary: In short.\n")).description == "In short."


BEGIN = "begin it with `---`, the keys title and date, and `---` again"
FORMS = "write it as 2026-03-01 or 2026-03-01T09:30:00Z"
QUOTE = "put a value that holds a colon in quotes"
BAD = {
    b"": f"1:1  error  the file is empty; {BEGIN}",
    b" \n\n": f"1:1  error  the file is empty; {BEGIN}",
    b"\n\nJust words.\n": f"3:1  error  the file has no front matter; {BEGIN}",
    b"---\ntitle: a\n": (
        "1:1  error  the front matter is never closed; add a line `---` below its keys"
    ),
    b"---\ntitle: caf\xe9\n": "2:11  error  byte 0xE9 is not UTF-8; save the file as UTF-8",
    "---\n".encode("utf-16"): "1:1  error  the file is UTF-16; save it as UTF-8",
    post(body="a\nb\0\0c"): "7:2  error  the text holds NUL (the first of 2); take it out",
    post(body="\x1b[1m"): ("6:1  error  the text holds the control character U+001B; take it out"),
    post(HEAD + "a: b: c\ntags: [d]\n"): (
        "5:5  error  the front matter cannot be read: a second colon stands in one line; "
        "put a value that holds a colon in quotes"
    ),
    post(HEAD + "tags: [a\n"): (
        "5:7  error  the front matter cannot be read: a list in brackets is never closed; separate "
        "the members with commas and close the bracket"
    ),
    post(HEAD + 'author: "a\n'): (
        "5:9  error  the front matter cannot be read: a quote is never closed; write a quote at "
        "its end"
    ),
    post("é: 1\n\tb: 2\n" + HEAD): (
        "3:1  error  the front matter cannot be read: a tab stands where only blanks may; "
        "indent with spaces"
    ),
    post(HEAD + "author: @a\n"): (
        "5:9  error  the front matter cannot be read: a value begins with a sign that means "
        "something else here; put it in quotes, and indent with spaces"
    ),
    post(HEAD + 'author: "a" b\n'): (
        "5:13  error  the front matter cannot be read: something stands behind the end of a quote "
        "or of a list; put a value that holds quotes in quotes of the other kind"
    ),
    post(HEAD + "author a\n"): (
        "5:1  error  the front matter cannot be read: a line has no colon; write a colon and a "
        "blank behind the key"
    ),
    post(HEAD + " author: a\n"): (
        "5:8  error  the front matter cannot be read: a key is indented, so it goes on with the "
        "value above; begin each key at the left"
    ),
    post(HEAD + 'author: "\\x"\n'): (
        "5:12  error  the front matter cannot be read: a backslash in double quotes means "
        "something else; use single quotes, where a backslash stands for itself"
    ),
    post(HEAD + "author: &a [b]\n"): (
        "5:9  error  the front matter uses an anchor; write the value out"
    ),
    post(HEAD + "author: *a\n"): (
        "5:9  error  the front matter uses an anchor; write the value out"
    ),
    post(HEAD + "author: !!python/name:os.system x\n"): (
        "5:9  error  the front matter uses a tag; take it off, quotes make text"
    ),
    post(HEAD + "author: a\x80b\n"): (
        "5:10  error  the front matter holds U+0080, unseen; take it out"
    ),
    post("- a\n"): "2:1  error  the front matter is no mapping; write one `key: value` a line, "
    "values with signs such as : # [ in quotes",
    post(HEAD + "title: Again\n"): (
        "5:1  error  `title` is given twice, which line 2 has; keep one of them"
    ),
    post(HEAD + "summary: a\ndescription: b\n"): (
        "6:1  error  `description` says the same as `summary`, which line 5 has; keep one of them"
    ),
    post(HEAD + "draft: true\n"): (
        "5:1  error  `draft` is not a front matter key; write `status: draft` or "
        "`status: published`"
    ),
    post(HEAD.replace("Hello", "")): "2:7  error  `title` is empty; fill it in",
    post(HEAD.replace("Hello", '" "')): "2:8  error  `title` is empty; fill it in",
    post(HEAD.replace("Hello", "[a]")): ("2:8  error  `title` is a list; write it as text"),
    post(HEAD.replace("Hello", r'"a\x07"')): (
        "2:8  error  `title` holds the control character U+0007; take it out"
    ),
    post(HEAD.replace("title: Hello\n", "")): (
        "1:1  error  `title` is missing; add a line `title: Hello, world`"
    ),
    post(HEAD.replace("Hello", "'!'").replace("slug: hello\n", "")): (
        "1:1  error  `slug` is missing; add a line `slug: hello-world`"
    ),
    post(HEAD.replace("date: 2026-03-01\n", "")): (
        "1:1  error  `date` is missing; add a line `date: 2026-03-01T09:30:00Z`"
    ),
    post(HEAD.replace("slug: hello", "slug: Héllo Wörld")): (
        "3:7  error  `slug` is 'Héllo Wörld'; use letters, digits and - _ . ~, "
        "such as `slug: hello-world`"
    ),
    post(HEAD.replace("slug: hello", "slug: ../x")): (
        "3:7  error  `slug` is '../x'; use letters, digits and - _ . ~, such as `slug: x`"
    ),
    post(HEAD.replace("slug: hello", "slug: page")): (
        "3:7  error  `slug` is 'page', an address of the site itself; choose another"
    ),
    post(HEAD.replace("slug: hello", f"slug: {'a' * 201}")): (
        "3:7  error  `slug` has 201 bytes; shorten it to 200 at most"
    ),
    post(HEAD.replace("2026-03-01", "hello")): f"4:7  error  `date` is 'hello'; {FORMS}",
    post(HEAD.replace("2026-03-01", "5")): f"4:7  error  `date` is '5'; {FORMS}",
    post(HEAD.replace("2026-03-01", "[5]")): f"4:7  error  `date` is a list; {FORMS}",
    post(HEAD.replace("2026-03-01", "")): f"4:6  error  `date` is empty; {FORMS}",
    post(HEAD.replace("2026-03-01", "2026-13-45")): (
        "4:7  error  `date` is '2026-13-45', which is not a date; fix the day or time"
    ),
    post(HEAD.replace("2026-03-01", "0001-01-01T00:00:00+02:00")): (
        "4:7  error  `date` lies outside the years 1 to 9999; fix the year"
    ),
    post(HEAD + "updated: 2026-02-28\n"): (
        "5:10  error  `updated` lies before `date`; a revision follows the publication"
    ),
    post(HEAD + "tags: {a: b}\n"): (
        "5:7  error  `tags` is a mapping, not a list; write `tags: [one, two]`"
    ),
    post(HEAD + "tags: [a, [5]]\n"): "5:11  error  a tag is a list; write it as text",
    post(HEAD + "tags: a, +\n"): (
        "5:7  error  a tag is '+', which gives no address; use a letter or a digit"
    ),
    post(HEAD.replace("slug: hello", "slug: .hidden")): (
        "3:7  error  `slug` is '.hidden'; use letters, digits and - _ . ~, such as `slug: hidden`"
    ),
    post(HEAD.replace("slug: hello", "slug: a\u2014b")): (
        "3:7  error  `slug` is 'a\u2014b'; use letters, digits and - _ . ~, such as `slug: a-b`"
    ),
    post(HEAD.replace("slug: hello", "slug: " + "\u65e5" * 67)): (
        "3:7  error  `slug` has 201 bytes; shorten it to 200 at most"
    ),
    post(HEAD + "tags: [a, '+']\n"): (
        "5:11  error  a tag is '+', which gives no address; use a letter or a digit"
    ),
    post(HEAD + "status: secret\n"): (
        "5:9  error  `status` is 'secret'; write `status: draft`, `hidden` or `published`"
    ),
    post(HEAD + "lang: deutsch!\n"): (
        "5:7  error  `lang` is 'deutsch!'; write a language tag such as `lang: en` or `lang: pt-BR`"
    ),
}


@pytest.mark.parametrize(("raw", "finding"), BAD.items(), ids=range(len(BAD)))
def test_errors_of_front_matter(raw: bytes, finding: str) -> None:
    """A defect of the head is reported with line, column and fix, and gives no document."""
    assert list_findings(raw) == [finding]
    assert read_document("posts/a.md", raw)[0] is None


@pytest.mark.parametrize(
    ("head", "finding"),
    [
        ("sumary: a\n", "5:1  warning  `sumary` is not a front matter key; did you mean"),
        ("Tag: a\n", "5:1  warning  `tag` is not a front matter key; did you mean `tags`?"),
        ("xyzzy: a\n", "5:1  warning  `xyzzy` is not a front matter key; the keys are aliase"),
        (
            f"description: {'a' * 161}\n",
            "5:14  warning  `description` has 161 characters; shorten it to 160",
        ),
    ],
)
def test_warnings_of_front_matter(head: str, finding: str) -> None:
    """A warning is returned beside the document."""
    document, findings = read_document("posts/a.md", post(HEAD + head))

    assert document
    assert [str(each)[len("posts/a.md:") :][: len(finding)] for each in findings] == [finding]


def test_all_defects_at_once() -> None:
    """One reading tells every defect of a head, in the order of the file."""
    head = "title: []\nslug: A b\ndate: x\ntags: a, +\ncolour: red\nstatus: secret\n"

    assert [line.split("  ")[0] for line in list_findings(post(head))] == [
        "2:8",
        "3:7",
        "4:7",
        "5:7",
        "6:1",
        "7:9",
    ]


def test_a_page_may_not_take_the_sites_own_address() -> None:
    """A page at the address of a list of the site is refused."""
    raw = post("title: Tags\nslug: tags\n")

    assert list_findings(raw, "pages/tags.md") == [
        "3:7  error  `slug` is 'tags', an address of the site itself; choose another"
    ]


def test_a_repeated_tag_counts_once() -> None:
    """Tags that differ in case alone are one tag, as written first."""
    assert read(post(f"{HEAD}tags: [Rust, web, rust]\n")).tags == ("Rust", "web")


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(f'*{before}' for _ in range(9))}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "raw",
    [
        post(BOMB),
        post("[" * 60_000 + "\n"),
        post("a: " + "[" * 60_000 + "]" * 60_000 + "\n"),
        post("{" * 60_000 + "\n"),
        post("- " * 30_000 + "\n"),
        post("? " * 30_000 + "\n"),
        post("a: " + "x" * 70_000 + "\n"),
        post("title: " + "1" * 60_000 + "\n"),
        post("title: " + "1:" * 30_000 + "1\n"),
        post("".join(f"k{number}: {number}\n" for number in range(5_000))),
        b"---\n" + b"a: b\n" * 2_500_000,
        b"\0" * 11_000_000,
        b"\xff" * 11_000_000,
        b"-" * 1_900_000,
        b"---\n" * 400_000,
        b"---" + b"\n" * 1_900_000 + b"x",
    ],
    ids=range(16),
)
def test_absurd_files_are_refused(raw: bytes) -> None:
    """A file that no author writes is refused by a finding, not by a lack of memory or stack."""
    document, findings = read_document("posts/a.md", raw)

    assert document is None
    assert any(finding.severity == "error" for finding in findings)


def test_the_largest_file() -> None:
    """A file over the bound is not looked into."""
    assert list_findings(b"x" * (LARGEST_FILE + 1)) == [
        f"1:1  error  the file is larger than {LARGEST_FILE} bytes; split it"
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["title", "slug", "date", "updated", "tags", "summary", "status"])


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=300))
@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes) -> None:
    """For any bytes there is a document or an error."""
    for whole in (raw, b"---\n" + raw, post(HEAD)[:-7] + raw, post(HEAD) + raw):
        document, findings = read_document("posts/a.md", whole)
        assert (document is None) == any(found.severity == "error" for found in findings)


@pytest.mark.size("quick", grows=True)
@settings(max_examples=scaled(quick=50, ci=300))
@given(st.dictionaries(KEYS | st.text(), VALUES, max_size=6))
def test_no_front_matter_raises(head: dict[str, object]) -> None:
    """For any head there is a document or an error, at a place within the file."""
    raw = f"---\n{yaml.safe_dump(head, allow_unicode=True)}---\nWords.\n"
    document, findings = read_document("posts/a.md", raw.encode("utf-8", "replace"))

    assert (document is None) == any(found.severity == "error" for found in findings)
    assert all(1 <= found.line <= raw.count("\n") + 1 for found in findings)


def test_python_frontmatter_reads_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    """python-frontmatter splits a post and loads its front matter; nothing else does."""
    heads, (split, load) = [], (YAMLHandler.split, YAMLHandler.load)

    def split_shouting(handler: YAMLHandler, text: str) -> tuple[str, str]:
        head, body = split(handler, text)
        return head, body.upper()

    def load_noting(handler: YAMLHandler, head: str, **more: object) -> object:
        heads.append(head)
        return load(handler, head, **more)

    monkeypatch.setattr(YAMLHandler, "split", split_shouting)
    monkeypatch.setattr(YAMLHandler, "load", load_noting)

    assert read(post()).markdown == "WORDS.\n"
    assert heads == [HEAD]


def test_agrees_with_python_frontmatter() -> None:
    """Heads and bodies of real posts are parted where python-frontmatter parts them."""
    for path in find_posts() or [Path(__file__).parent / "samples" / "everything.md"]:
        raw = path.read_bytes()
        document, _ = read_document(f"posts/{path.name}", raw)
        theirs = frontmatter.loads(raw.decode())
        if document:
            lines = raw.decode().splitlines()
            assert document.title == " ".join(str(theirs["title"]).split())
            assert document.markdown.strip() == theirs.content
            assert lines[document.body_line - 1] == document.markdown.split("\n")[0]
