"""What is wrong, private or hostile in one file of a journal harms no other."""

from pathlib import Path

import pytest

from site_build.importers.dialects import Converter
from site_build.importers.liquid import convert_liquid


@pytest.mark.parametrize(
    ("system", "body", "shown"),
    [
        (
            "Eleventy",
            "a {# secret #}{#- secret\n -#} b\n\n## C {#id}\n\n{# d",
            "a  b\n\n## C {#id}\n\n{# d",
        ),
        ("Zola", "a {# secret #} b", "a  b"),
        ("Markdown", "a %% secret %% b 100 %% c 50 %% %%\nsecret\n%%", "a  b 100 %% c 50 %% "),
    ],
)
def test_private_notes_stay_private(system: str, body: str, shown: str) -> None:
    """Comments of a dialect go; what only looks like one stays."""
    assert Converter(system, {}, body, is_mdx=False).body == shown


@pytest.mark.parametrize("end", ["{% endcomment %}", ""])
def test_a_long_comment_stays_private(end: str) -> None:
    """Liquid bounds none, and refuses one that is never closed."""
    body = f"a {{% comment %}}{'secret ' * 5_000}{end}"
    assert convert_liquid(body, {}, str, lambda *_: None) == "a "
