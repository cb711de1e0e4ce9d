"""The schema of front matter: it takes what the reader takes, and refuses what check refuses."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from benchmarks.corpus import find_corpus
from site_build.cli.schema import describe_front_matter
from site_build.content.document import read_document
from site_build.content.front_matter import PELICAN_KEYS, PageFrontMatter
from site_build.site import Kind
from tests.patience import patience
from tests.site_build.workbench import JOURNAL, ROOT


class EditorLoader(yaml.SafeLoader):
    """YAML as an editor reads it: a date is a text, as in YAML 1.2."""


EditorLoader.yaml_implicit_resolvers = {
    sign: [(tag, form) for tag, form in resolvers if not tag.endswith(":timestamp")]
    for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_head(text: str) -> Any:
    """Return the head of a file as an editor sees it."""
    return yaml.load(text.split("\n---", 1)[0].removeprefix("---"), Loader=EditorLoader)  # noqa: S506


def accepts(kind: Kind, head: Any) -> bool:
    """Return whether the schema takes a head."""
    return bool(Draft202012Validator(describe_front_matter(kind)).is_valid(head))


def is_read(kind: Kind, text: str) -> bool:
    """Return whether the reader takes a file."""
    document, _ = read_document(f"{kind}s/some.md", text.encode())
    return document is not None


def list_sources() -> Iterator[tuple[Kind, Path]]:
    """Yield every source file of the journal, of the small journal and of the corpus."""
    for folder in (ROOT / "content", JOURNAL):
        for path in sorted(folder.rglob("*.md")):
            yield ("page" if path.parent.name == "pages" else "post"), path
    for path in sorted(find_corpus().glob("*.md")):
        yield "post", path


@pytest.mark.parametrize("kind", ["post", "page"])
def test_the_schema_is_one(kind: Kind) -> None:
    """It obeys the 2020-12 meta-schema, and speaks of every key."""
    schema = describe_front_matter(kind)

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {*PageFrontMatter.model_fields, *PELICAN_KEYS} <= schema["properties"].keys()


def test_every_head_has_the_same_verdict() -> None:
    """The schema accepts the heads of journal and corpus that are read, and refuses the others."""
    validators = {
        kind: Draft202012Validator(describe_front_matter(kind)) for kind in ("post", "page")
    }
    sources = list(list_sources())
    verdicts = []
    for kind, path in sources:
        text = path.read_text(encoding="utf-8")
        verdicts.append(is_read(kind, text))
        assert validators[kind].is_valid(read_head(text)) == verdicts[-1], path
    assert len(sources) > 10
    assert any(verdicts)


POST = {"title": "A", "slug": "a", "date": "2026-03-01"}
VALUES = {
    "title": r"""
        A | ' A ' | '' | ' ' | 12 | yes | true | null | [a] | {a: b} | "a\u0007" | "a\nb"
    """,
    "slug": r"""
        a | a-b | 9 | '9' | -a | A | a_b | a b | ' a ' | ä | page | api | tags | v1.0~x
        null | a-- | .a | a/b | a%20b | 日本語
    """,
    "date": r"""
        2026-03-01 | '2026-03-01' | 2026-03-01T09:30:00Z | 2026-03-01T09:30
        2026-03-01 09:30 | 2026-03-01 9:30:00 | 2026-03-01T09:30:00.123456Z
        2026-03-01T09:30:00+02:00 | 2026-03-01t09:30:00z | 2026-3-1 | 2026-13-01
        2026-04-31 | 2026-02-30 | 2026-03-01T24:00 | 2026-03-01T09:60 | 3 March 2026
        2026 | '' | null | true | [2026-03-01] | 01.03.2026 | March | soon
        2026-03-01T09:30:00+25:00 | 20260301 | Mar 3 2026 10:20 | 1 Mar. 2026
    """,
    "updated": r"""
        2026-03-02 | null | '' | soon | 3 | 2026-03-01T10:00:00Z
    """,
    "tags": r"""
        [a, b] | [] | null | a | a, b | [1] | [true] | [null] | [[a]] | {a: b}
        [''] | [ä] | [A, a] | 2024 | yes | 3.10 | a; b
    """,
    "description": r"""
        Words | null | '' | 3 | [a]
    """,
    "excerpt": r"""
        Words | null | false
    """,
    "status": r"""
        draft | published | Draft | null | '' | hidden | true | [draft] | skip | HIDDEN | secret
    """,
    "lang": r"""
        en | pt-BR | zh-Hant-TW | english | e | no | 'no' | null | en_GB | ' en '
        12
    """,
    "author": r"""
        Ann | null | 7 | [Ann]
    """,
    "authors": r"""
        Ann | Ann, Bob | [Ann, Bob] | null | {a: b}
    """,
    "modified": r"""
        2026-03-02 | 2 March 2026 | soon | null
    """,
    "aliases": r"""
        [old] | [] | null | old | [/a/] | [/a/b.html, /a] | [/ä/ö/] | [a b] | [/a b/] | [3] | [/]
        ["/a?b=1"] | ["/a/#b"] | [//a/] | [/a/../b/] | [/.a/] | [/a.php] | [/a.php/] | [/a%20b/]
        ['https://a.example/'] | [''] | [null] | [' old '] | [Old] | [[a]] | {a: b} | [-a]
    """,
    "summary": r"""
        Words | null | [a]
    """,
    "draft": r"""
        true | false | null
    """,
    "hidden": r"""
        true
    """,
    "published": r"""
        true
    """,
    "unknown": r"""
        anything | [a]
    """,
    "tag": r"""
        [a]
    """,
}
"""Values that are written behind each key, parted by bars."""

LONG = [("slug", "a" * 200), ("slug", "a" * 201), ("description", "x" * 161)]


def list_values() -> Iterator[tuple[str, str]]:
    """Yield each key with each of its values."""
    for key, lines in VALUES.items():
        for line in lines.strip().splitlines():
            yield from ((key, value.strip()) for value in line.split(" | "))
    yield from LONG


@pytest.mark.parametrize("kind", ["post", "page"])
@pytest.mark.parametrize(("key", "value"), list(list_values()))
def test_each_value_has_the_same_verdict(kind: Kind, key: str, value: str) -> None:
    """For every key and every sort of value, schema and reader agree."""
    lines = {**POST, key: value}
    text = "".join(f"{name}: {said}\n" for name, said in lines.items())
    whole = f"---\n{text}---\n\nWords.\n"

    assert accepts(kind, read_head(whole)) == is_read(kind, whole)


@pytest.mark.parametrize("kind", ["post", "page"])
@pytest.mark.parametrize("missing", ["title", "slug", "date"])
def test_missing_keys_have_the_same_verdict(kind: Kind, missing: str) -> None:
    """A page needs no date, and a slug is made of the title."""
    text = "".join(f"{name}: {said}\n" for name, said in POST.items() if name != missing)
    whole = f"---\n{text}---\n\nWords.\n"

    assert (
        accepts(kind, read_head(whole))
        == is_read(kind, whole)
        == ((kind, missing) == ("page", "date") or missing == "slug")
    )


def test_two_names_of_one_key_are_refused() -> None:
    """`summary` says the same as `description`."""
    assert not accepts("post", {**POST, "summary": "A", "description": "A"})


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        ({**POST, "updated": "2025-01-01"}, "lies before `date`"),
        ({**POST, "date": "2027-02-29"}, "is not a date"),
        ({**POST, "date": "March 2026"}, "write it as"),
        ({**POST, "slug": "a\u2014b"}, "use letters"),
        ({**POST, "tags": ["?"]}, "gives no address"),
    ],
)
def test_errors_that_only_check_finds(head: dict[str, Any], sentence: str) -> None:
    """These the schema lets pass, as its papers say; the check does not."""
    text = f"---\n{yaml.safe_dump(head)}---\n\nWords.\n"
    text = re.sub(r"'(\d{4}-\d\d-\d\d)'", r"\1", text)

    assert accepts("post", head)
    _, findings = read_document("posts/some.md", text.encode())
    assert sentence in findings[0].message


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in an empty folder of the test's own."""
    return subprocess.run(
        [sys.executable, "-m", "site_build", "schema", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=patience(),
        check=False,
    )


@pytest.mark.parametrize("kind", ["post", "page"])
def test_the_schema_is_printed(tmp_path: Path, kind: Kind) -> None:
    """The command prints the schema, and writes nothing."""
    done = command(tmp_path, kind)

    assert json.loads(done.stdout) == describe_front_matter(kind)
    assert list(tmp_path.iterdir()) == []


def test_the_settings_of_an_editor_are_printed(tmp_path: Path) -> None:
    """They have a field for each key of a post and of a page."""
    settings = json.loads(command(tmp_path, "--settings").stdout)
    post, page = settings["frontMatter.taxonomy.contentTypes"]
    fields = {field["name"]: field for field in post["fields"]}

    assert fields.keys() == PageFrontMatter.model_fields.keys()
    required = [name for name, field in fields.items() if field["required"]]
    assert required == ["title", "date"]
    assert fields["date"]["type"] == "datetime"
    assert [field["name"] for field in page["fields"] if field["required"]] == ["title"]
    assert settings["frontMatter.preview.host"] == "http://127.0.0.1:8001"
    assert list(tmp_path.iterdir()) == []
