"""The pages of the reference are made once, and again when a build brings something new."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from edge_api.db.problems import Problem
from edge_api.http.pages import Reference
from edge_api.operation.reference.pages import ReferencePage
from edge_api.schema.page_templates import NOTES_FILE

pytestmark = pytest.mark.one_engine

SHELL = "<title><!-- title --></title><a href='<!-- path -->'></a><!-- content -->"


class Press:
    """Makes one page, and counts how often it is asked to."""

    def __init__(self) -> None:
        self.count = 0

    def make(self, slug: str | None) -> tuple[ReferencePage, ...]:
        """Return the pages."""
        self.count += 1
        return (
            ReferencePage("/docs/", "Overview", "A & <B>", f"Says {slug}.", lambda **_: "*Words.*"),
        )


def hand_over(folder: Path, **sources: str) -> Path:
    """Write templates as a build does, and return the folder of the build."""
    (folder / "templates").mkdir(parents=True)
    for name, source in sources.items():
        (folder / "templates" / f"{name}.html").write_text(source, encoding="utf-8")
    return folder


@pytest.fixture
def press() -> Press:
    """Return a press that nobody has used."""
    return Press()


@pytest.fixture
def reference(press: Press) -> Reference:
    """Return a reference of one page."""
    return Reference(press.make)


def test_a_start_loads_no_renderer() -> None:
    """Readers wait for it during an upgrade; whoever reads the reference first loads these."""
    program = (
        "import sys, edge_api.app\n"
        "print(*{'markdown_it', 'pygments'} & {*sys.modules})\n"
        "import edge_api.operation.reference.pages\n"
        "print(*sorted({'markdown_it', 'pygments'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "\nmarkdown_it pygments\n"


async def test_a_page_is_made_once(tmp_path: Path, press: Press, reference: Reference) -> None:
    """A hundred readers at once, and a build with the same newest post, share the pages."""
    file = reference.files["/docs/"]
    ground = hand_over(tmp_path / "one", docs_shell=SHELL, docs="{{ page.html }}")
    bodies = await asyncio.gather(*(reference.read(file, ground, "newest") for _ in range(100)))
    again = hand_over(tmp_path / "two", docs_shell=SHELL, docs="{{ page.html }}")
    later = await reference.read(file, again, "newest")

    assert press.count == 1
    assert all(body == later for body in bodies)
    assert b"<title>A &amp; &lt;B&gt;</title><a href='/docs/'></a><p><em>Words.</em></p>" in later


async def test_a_build_of_an_earlier_version_has_the_whole_text(
    tmp_path: Path, reference: Reference
) -> None:
    """Its template asks for a text, and for operations below it, which the text has now."""
    source = "{{ page.prose.html }}{% for entry in page.entries %}{{ entry.anchor }}{% endfor %}"
    ground = hand_over(tmp_path / "one", docs_shell=SHELL, docs=source)

    assert b"</a><p><em>Words.</em></p>" in await reference.read(
        reference.files["/docs/"], ground, "newest"
    )


async def test_a_build_with_another_look_makes_it_anew(
    tmp_path: Path, press: Press, reference: Reference
) -> None:
    """Other templates and another newest post count at once."""
    file = reference.files["/docs/"]
    first = hand_over(tmp_path / "one", docs_shell=SHELL, docs="One {{ page.description }}")
    second = hand_over(tmp_path / "two", docs_shell=SHELL, docs="Two {{ page.description }}")
    grounds = ((first, "newest"), (second, "newest"), (second, "next"))
    said = [(await reference.read(file, *ground)).decode() for ground in grounds]

    assert [text.rpartition("</a>")[2] for text in said] == [
        "One Says newest.",
        "Two Says newest.",
        "Two Says next.",
    ]
    assert press.count == 2


async def test_a_page_outlives_the_folder_of_its_build(
    tmp_path: Path, reference: Reference
) -> None:
    """The templates are read at once: a page that was not requested yet can still be made."""
    ground = hand_over(
        tmp_path / "one", docs_shell=SHELL, docs="One", shell=SHELL, docs_try="{{ docs }}"
    )
    await reference.read(reference.files["/docs/"], ground, "newest")
    same = hand_over(
        tmp_path / "two", docs_shell=SHELL, docs="One", shell=SHELL, docs_try="{{ docs }}"
    )
    for file in (tmp_path / "one" / "templates").iterdir():
        file.unlink()

    assert await reference.read(reference.files["/docs/try/"], same, "newest") == (
        b"<title>Try the API</title><a href='<!-- path -->'></a>/docs/"
    )


@pytest.mark.parametrize("path", ["/docs/", "/docs/try/"])
async def test_a_build_without_the_templates_has_the_markdown_alone(
    tmp_path: Path, reference: Reference, path: str
) -> None:
    """The page is 503 with a time to come again; its Markdown needs no template."""
    ground = hand_over(tmp_path / "bare", docs="No shell.")
    with pytest.raises(Problem) as caught:
        await reference.read(reference.files[path], ground, "newest")

    assert (caught.value.code, caught.value.headers["Retry-After"]) == ("unavailable", "60")
    assert b"*Words.*" in await reference.read(reference.files["/docs/index.md"], ground, "newest")


@pytest.mark.parametrize("source", ["{{ page.gone }}", "{{ gone.gone }}", "{{ page.gone() }}"])
@pytest.mark.parametrize("is_ours", [True, False])
async def test_an_unknown_name_is_an_error_in_our_template_alone(
    tmp_path: Path,
    reference: Reference,
    caplog: pytest.LogCaptureFixture,
    source: str,
    *,
    is_ours: bool,
) -> None:
    """A theme's page is shown with a gap; one that cannot be shown at all is 503, and never 500."""
    ground = hand_over(tmp_path / "one", docs_shell=SHELL, docs=f"<p>Words{source}</p>")
    notes = {"ours": ["docs.html"] if is_ours else [], "unknown": []}
    (ground / "templates" / NOTES_FILE).write_text(json.dumps(notes))
    reading = reference.read(reference.files["/docs/"], ground, "newest")

    if is_ours or source.endswith("() }}"):
        with pytest.raises(Problem) as caught:
            await reading
        assert caught.value.code == "unavailable"
        assert "the template docs.html cannot be shown: " in caplog.text
    else:
        assert b"<p>Words</p>" in await reading


async def test_a_build_without_notes_is_shown(tmp_path: Path, reference: Reference) -> None:
    """One of version 1.0.0 says nothing of its templates, and is served until the next is built."""
    ground = hand_over(tmp_path / "one", docs_shell=SHELL, docs="<p>Words{{ page.gone }}</p>")

    assert b"<p>Words</p>" in await reference.read(reference.files["/docs/"], ground, "newest")
