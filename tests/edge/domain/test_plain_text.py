"""The words of a post without its markup."""

import pytest

from edge_api.journal.posts import split_prose_and_code


@pytest.mark.parametrize(
    ("html", "prose", "code"),
    [
        ("", "", ""),
        ("<p>One <em>w</em>ord.</p>", "One word.", ""),
        ("<p>One</p><p>two<br>three</p>", "One two three", ""),
        ("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", "a b c", ""),
        ("<table><tr><th>a</th><td>b</td></tr></table>", "a b", ""),
        (
            "<p>Run <code>make</code>.</p><pre>make\n  run</pre><p>Done.</p>",
            "Run make. Done.",
            "make run",
        ),
        ("<div class='highlight'><pre><span>a</span>.b</pre></div><pre>c</pre>", "", "a.b c"),
        ("<figure><img alt='x'><figcaption>Seen</figcaption></figure>", "Seen", ""),
        ("<p>1 &lt; 2 &amp; &lt;b&gt;</p>", "1 < 2 & <b>", ""),
        ("<p>never <b>closed", "never closed", ""),
        ('<p title="a > b">c</p>', "c", ""),
    ],
)
def test_a_text_is_what_a_reader_sees(html: str, prose: str, code: str) -> None:
    """Words end where blocks do, and nowhere else; blocks of code are separate."""
    assert split_prose_and_code(html) == (prose, code)
