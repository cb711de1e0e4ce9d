"""The theme's static files as they are published: sheets without comments, small when packed."""

import re
from pathlib import Path

import pytest

from site_build.build.assets import Assets
from site_build.errors import BuildError

THEME = Path(__file__).resolve().parent.parent.parent / "theme"


@pytest.mark.parametrize(
    ("written", "published"),
    [
        ("/* What it is. */\n\n.a { color: red }\n", ".a { color: red }\n"),
        (".a /* and */ .b {}", ".a\n.b {}"),
        (".a {\n  color: red;\n}\n\n.b {}", ".a {\ncolor: red;\n}\n.b {}"),
        (".a { content: '  said' }", ".a { content: '  said' }"),
        (".a\\26  b {}", ".a\\26  b {}"),
        (".a\\26/* c */ b {}", ".a\\26/* c */ b {}"),
        (".a/**/.b {}", ".a/**/.b {}"),
        ('.a { content: "/* said */" }', '.a { content: "/* said */" }'),
        (".a { content: '\\'/* said */' }", ".a { content: '\\'/* said */' }"),
        (".a { --b: url(/c/*d) } /* e */ .f {}", ".a { --b: url(/c/*d) }\n.f {}"),
        ("/*! A licence. */\n.a {}", "/*! A licence. */\n.a {}"),
        (".a {} /* without an end", ".a {} /* without an end"),
    ],
)
def test_a_sheet_goes_out_without_comments(tmp_path: Path, written: str, published: str) -> None:
    """Text that looks like a comment stays, and so does a licence; no two tokens become one."""
    (tmp_path / "style.css").write_text(written)
    asset = Assets(tmp_path).published["style.css"]

    assert asset.data.decode() == published


def test_the_sheet_of_every_page_loses_comments_alone() -> None:
    """All else of the journal's own sheet is there, in the same order."""
    written = (THEME / "static" / "style.css").read_text()
    published = Assets(THEME / "static").published["style.css"].data.decode()
    ruled = re.sub(r"/\*.*?\*/", "", written, flags=re.DOTALL)
    named = re.sub(r'url\("/theme/([^"]*?)\.[0-9a-f]{12}(\.\w+)"\)', r'url("\1\2")', published)

    assert named.split() == ruled.split()
    assert "/*" not in published


@pytest.mark.parametrize("first", ["a.css", "z.css"])
@pytest.mark.parametrize(
    "written", ['@import url("%s");', "@import url(%s) screen;", '@import "%s";']
)
def test_sheets_may_import_each_other(tmp_path: Path, first: str, written: str) -> None:
    """Under any name: a sheet is published after those that it names."""
    (tmp_path / first).write_text(written % "sub/m.css")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.css").write_text(".a { background: url(../b.svg) }")
    (tmp_path / "b.svg").write_text("<svg/>")

    published = Assets(tmp_path).published

    assert f'url("/{published["sub/m.css"].path}")'.encode() in published[first].data
    assert f'url("/{published["b.svg"].path}")'.encode() in published["sub/m.css"].data


def test_circular_style_sheet_imports_are_reported(tmp_path: Path) -> None:
    """None of them could be named by what it holds."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "b")):
        (tmp_path / f"{name}.css").write_text(f'@import url("{other}.css");')

    with pytest.raises(BuildError, match=r"^the style sheets b\.css, c\.css import each other"):
        Assets(tmp_path)
