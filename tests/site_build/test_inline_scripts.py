"""Scripts that stand in the pages: those that browsers will run, and none with a stale hash."""

import re
from pathlib import Path

import pytest

from edge_api.schema.site_policy import INLINE_SCRIPTS
from site_build.faults import BuildError
from site_build.making.inline_scripts import find_inline, hash_source

INLINE = Path(__file__).resolve().parent.parent.parent / "theme" / "inline"


def test_each_script_of_the_theme_has_its_hash() -> None:
    """The policy names those that there are, and no other."""
    read = find_inline(INLINE)

    assert {hash_source(read(path.name)) for path in INLINE.iterdir()} == set(INLINE_SCRIPTS)


def test_a_script_stands_there_without_its_preface() -> None:
    """What is said to those who mend it is not sent with each page, and nothing is escaped."""
    script = find_inline(INLINE)("before_paint.js")

    assert script.startswith("const scheme")
    assert "=>" in script.__html__()


def test_a_hash_as_browsers_make_it() -> None:
    """The example of CSP level 3, section 2.3.1."""
    expected = "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="

    assert hash_source("alert('Hello, world.');") == expected


def test_a_changed_script_is_told_with_its_hash(tmp_path: Path) -> None:
    """The sentence has the words that mend it."""
    (tmp_path / "changed.js").write_text("/* Why. */\nalert('Hello, world.');", encoding="utf-8")

    with pytest.raises(BuildError) as told:
        find_inline(tmp_path)("changed.js")

    assert re.search(r"changed\.js was changed", str(told.value))
    assert hash_source("alert('Hello, world.');") in str(told.value)
    assert "edge_api/schema/site_policy.py" in str(told.value)
