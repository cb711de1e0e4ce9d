"""The letter of a post: what its copies have, what stays of the post, and who can read it."""

import re
from base64 import b64encode
from collections.abc import Callable
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from html import unescape
from pathlib import Path
from typing import Any

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from selectolax.lexbor import LexborHTMLParser

from edge_api.db.mail_addresses import MailServer, parse_relay
from edge_api.mail.transports import SmtpSession
from edge_api.newsletter.letter import MAX_HTML_OCTETS
from edge_api.schema.sentences import CATALOGUE_PATH, compile_catalogue, load_language
from tests.edge.edge_process import ROOT
from tests.edge.mail.relays import Relay, serving
from tests.edge.newsletter.letters import (
    DATE,
    MESSAGE_ID,
    POSTAL,
    RECIPIENT,
    SITE,
    TOKEN,
    URL,
    compose,
    copy_letter,
    read,
    read_letters,
    read_part,
)
from tests.edge.newsletter.mail_programs import GRACEFUL, SUPPORT, find_unsupported

pytestmark = pytest.mark.one_engine

HOSTILE = {
    "a placeholder": "<p>{{ unsubscribe_url }} %(site)s {0} {unsubscribe_url}</p>",
    "soft line breaks": "<p>=\n=3D=\n=20 =\r\n</p><pre>=\n.\n.x\nFrom me\n--=_letter\n</pre>",
    "a long word": f"<p>{'x' * 5000}</p>",
    "a long line": f"<p>{'word ' * 5000}</p>",
    "right to left": f"<p>{'שלום עולם ' * 300}\u202e</p>",
    "emoji": f"<p>{'😀👩‍👩‍👧 ' * 500}</p>",
    "another's address": f"<p>{SITE}/unsubscribe?token={'f' * 64} &amp;amp; &lt;/td&gt;</p>",
    "nothing": "",
}
POSTS = {
    "code": """
A paragraph with `inline code` and a [link](https://example.org/?a=1&b=2).

```python
if a < b and "&amp;" != "<b>":
    print("two  blanks")
```

| Name | Number |
|:-----|-------:|
| one  |     12 |

- one
    1. inner

> Said by somebody.

<details><summary>More</summary>

Hidden.

</details>
""",
    "notes": """
A claim.[^1] Einstein wrote $E = mc^2$, and

$$\\frac{a+1}{b} = \\sqrt{x}$$

![A tower](../images/tower.png)

![A drawing](../images/drawing.svg)

![Elsewhere](https://other.example/pixel.png)

<iframe src="https://www.youtube.com/embed/abcdefghijk"></iframe>

[^1]: The first note.
""",
    "remains": """
- [x] done
- [ ] open

![In the post](data:image/gif;base64,R0lGODlhAQABAAAAACw=/d)

![](cid:part/d)

[![Linked](cid:part/d)](https://other.example/)

[bad](javascript:alert(1)) and <a id="place" class="b">a place</a>, [good](https://other.example/)
""",
    "hebrew": "הדף צריך מקום לאצבעות.[^1]\n\n> ציטוט.\n\n[^1]: הערת שוליים.\n",
    "japanese": "ページには余白が必要です。\n\n## 見出し\n\n- 一\n",
}


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory, build_journal: Callable[..., None]) -> Any:
    """Return the letters of posts that the build has rendered, by slug."""
    folder = tmp_path_factory.mktemp("letters")
    (folder / "content" / "images").mkdir(parents=True)
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    (folder / "content" / "images" / "drawing.svg").write_text(drawing)
    tower = ROOT / "theme" / "static" / "touch_icon.png"
    (folder / "content" / "images" / "tower.png").write_bytes(tower.read_bytes())
    for slug, text in POSTS.items():
        language = {"hebrew": "he", "japanese": "ja"}.get(slug, "en")
        head = f"title: The {slug} & more\nslug: {slug}\nlang: {language}\nsummary: About {slug}."
        path = folder / "content" / f"{slug}.md"
        path.write_text(f"---\n{head}\ndate: 2026-06-01\n---\n{text}", encoding="utf-8")
    build_journal(folder / "content", folder / "build", "2026-11-01T00:00:00Z", SITE)
    return dict(read_letters(folder / "build", {"hebrew": "he", "japanese": "ja"}))


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("language", ["en", "he"])
def test_every_personal_part_is_replaced_in_every_encoding(html: str, language: str) -> None:
    """Two copies differ in recipient, address, id and date alone, and each has its own."""
    letter = compose(html, language)
    other = f"{SITE}/unsubscribe?token={'9' * 64}&list=a=b"
    own = {"recipient": "bo@other.example", "unsubscribe_url": other}
    mine, theirs = copy_letter(letter), copy_letter(letter, message_id="<2@other.example>", **own)

    for octets, url, recipient, strange in (
        (mine, URL, RECIPIENT, other),
        (theirs, other, "bo@other.example", TOKEN),
    ):
        message = read(octets)
        page, text = LexborHTMLParser(read_part(message, "html")), read_part(message, "plain")
        links = [link.attributes["href"] for link in page.css("td.small a")]
        assert links == [SITE, f"{SITE}/journal/post/", url]
        assert url in text.splitlines()
        assert message["List-Unsubscribe"] == f"<{url}>"
        assert message["To"] == recipient
        assert strange not in f"{message}{text}{page.html}"
    texts = [
        "".join(str(read_part(read(octets), kind)) for kind in ("plain", "html"))
        for octets in (mine, theirs)
    ]
    assert texts[0].replace(URL, other).replace(URL, other) == unescape_url(texts[1], other)


def unescape_url(text: str, url: str) -> str:
    """Return a text with a URL as it is outside HTML."""
    return text.replace(url.replace("&", "&amp;"), url)


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
def test_a_copy_keeps_the_rules_of_messages(html: str) -> None:
    """RFC 5322 and MIME: no defect, short lines in ASCII, one of each header."""
    octets = copy_letter(compose(html, title="é " * 150))
    head, _, body = octets.partition(b"\r\n\r\n")
    message = read(octets)

    assert octets.isascii()
    assert b"\n" not in octets.replace(b"\r\n", b"")
    assert max(map(len, body.split(b"\r\n"))) <= 76
    assert all(len(line) <= 78 or line.startswith(b"List-") for line in head.split(b"\r\n"))
    assert max(map(len, head.split(b"\r\n"))) <= 998
    names = [name.lower() for name in message]
    assert len(names) == len(set(names))
    assert not {"auto-submitted", "precedence", "cc", "bcc", "list-help"} & set(names)
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert (message["Message-ID"], message["Date"].datetime) == (MESSAGE_ID, DATE)


def test_the_headers_of_lists() -> None:
    """RFC 2919, 2369 and 8058: an id below a domain, and one address, over https, for one POST."""
    message = read(copy_letter(compose(language="he")))

    assert re.fullmatch(r"<[a-z0-9-]+(\.[a-z0-9-]+)+>", message["List-Id"])
    assert re.fullmatch(r"<https://[^<>,\s]+>", message["List-Unsubscribe"])
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["Content-Language"] == "he"
    assert message["From"] == "The Quiet Journal <post@journal.example>"


@pytest.mark.parametrize(
    "changes",
    [
        {"message_id": "<a@b>\r\nBcc: c@d"},
        {"message_id": "a@b"},
        {"unsubscribe_url": "https://a.example/\r\nBcc: c@d"},
        {"unsubscribe_url": "https://a.example/>, <mailto:b@c>"},
        {"unsubscribe_url": "javascript:alert(1)"},
        {"unsubscribe_url": 'https://a.example/"onclick'},
        {"recipient": "a@b.example, c@d.example"},
        {"recipient": "a@b.example\r\nBcc: c@d"},
    ],
)
def test_a_wrong_personal_part_is_refused(changes: dict[str, str]) -> None:
    """Nothing is put into a header or an address of HTML that could be read as more."""
    letter = compose()
    with pytest.raises(ValueError, match=r"must|invalid|address|mailbox|@"):
        copy_letter(letter, **changes)


def test_a_hostile_title_stays_a_title() -> None:
    """Line ends, markup and encoded words of titles and names mean nothing in a letter."""
    title = "A\r\nBcc: x@y.example =?utf-8?q?z?= <b>&amp; \u202eno"
    message = read(copy_letter(compose(title=title, site_title=title)))
    page = LexborHTMLParser(read_part(message, "html"))

    assert message["Bcc"] is None
    assert page.css("b") == []
    said = "A  Bcc: x@y.example =?utf-8?q?z?= <b>&amp; no"
    assert page.css("h1")[0].text() == said
    assert str(make_header(decode_header(message["Subject"]))) == said.replace("=?", "= ?")


async def test_a_signature_of_the_relay_covers_both_headers() -> None:
    """DKIM by dkimpy, on what a relay got by SMTP: both List headers are signed, and hold."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    relay = Relay()
    letter = compose(HOSTILE["emoji"] + HOSTILE["soft line breaks"])
    message = letter.copy(RECIPIENT, URL, MESSAGE_ID, DATE)
    async with serving(relay):
        server = parse_relay(f"smtp://127.0.0.1:{relay.port}")
        assert isinstance(server, MailServer)
        async with SmtpSession(server, None) as session:  # type: ignore[arg-type]
            await session.send("post@journal.example", "ann@work.example", message)
    got = relay.received[0].octets
    # As for OpenDKIM, a relay has to be told to sign List-Unsubscribe-Post.
    names = [name.lower().encode() for name in message_from_bytes(got)]
    signature = dkim.sign(got, b"mail", b"journal.example", secret, include_headers=names)
    signed = re.sub(rb"\s", b"", signature).split(b"h=")[1].split(b";")[0].lower().split(b":")
    record = b"v=DKIM1; k=rsa; p=" + b64encode(public)

    assert {b"list-unsubscribe", b"list-unsubscribe-post", b"list-id"} <= set(signed)
    assert dkim.verify(signature + got, dnsfunc=lambda *_, **__: record)
    changed = got.replace(b"One-Click", b"Two-Click")
    assert not dkim.verify(signature + changed, dnsfunc=lambda *_, **__: record)
    assert message_from_bytes(got, policy=policy.default)["List-Unsubscribe"] == f"<{URL}>"


def test_no_program_lacks_what_a_letter_has(letters: dict[str, bytes]) -> None:
    """Elements, attributes and properties are those of the list, or are missed without harm."""
    for slug, octets in letters.items():
        assert list(find_unsupported(read_part(read(octets), "html"))) == [], slug
    assert {each for each, support in SUPPORT.items() if "n" in support} == set(GRACEFUL)


def test_code_tables_and_lists_survive(letters: dict[str, bytes]) -> None:
    """In HTML with their styles, and in the text as one reads them."""
    message = read(letters["code"])
    page, text = LexborHTMLParser(read_part(message, "html")), read_part(message, "plain")

    code = 'if a < b and "&amp;" != "<b>":\n    print("two  blanks")\n'
    assert page.css("pre")[0].text() == code
    assert f"```\n{code}```" in text
    assert "text-align: right" in str(page.css(".text td")[1].attributes["style"])
    assert "| one | 12 |" in text
    assert "- one\n  1. inner" in re.sub(r"\n\s*\n", "\n", text)
    assert "> Said by somebody." in text
    assert "[link](https://example.org/?a=1&b=2)" in text
    assert "Hidden." in text
    assert page.css("details, script, link, iframe, form") == []


def test_notes_formulas_and_pictures(letters: dict[str, bytes]) -> None:
    """Footnotes are numbers, formulas text; only pictures of the site are fetched."""
    message = read(letters["notes"])
    page, text = LexborHTMLParser(read_part(message, "html")), read_part(message, "plain")
    words = page.css(".text")[0].text()

    for said in (words, text):
        assert "A claim.[1]" in said
        assert "E = mc²" in said
        assert "(a + 1)/b = √x" in said
        assert "The first note." in said
        assert "\u21a9" not in said
    (picture,) = page.css("img")
    assert picture.attributes["src"] == f"{SITE}/images/tower.png"
    assert picture.attributes["alt"] == "A tower"
    assert int(picture.attributes["width"] or 0) <= 560
    links = {link.text(): link.attributes["href"] for link in page.css(".text a")}
    assert links["[Elsewhere]"] == "https://other.example/pixel.png"
    assert links["[A drawing]"] == f"{SITE}/images/drawing.svg"
    assert "https://www.youtube.com/watch?v=abcdefghijk" in links.values()
    assert not [link for link in links.values() if "#fn" in str(link)]
    fetched = re.findall(r"(?:src|background)=\"([^\"]+)|url\('?([^')]+)", str(page.html))
    assert all("".join(each).startswith(f"{SITE}/") for each in fetched)


def test_what_has_no_address_is_no_link(letters: dict[str, bytes]) -> None:
    """Pictures within the post are their words, and the boxes of tasks are text."""
    message = read(letters["remains"])
    (cell,) = LexborHTMLParser(read_part(message, "html")).css(".text")
    text = read_part(message, "plain")
    words = " ".join(cell.text().split())

    assert "[x] done [ ] open [In the post] [Linked] bad and a place, good" in words
    links = [link.attributes["href"] for link in cell.css("a")]
    assert links == ["https://other.example/"] * 2
    assert cell.css("img") == []
    assert "- [x] done\n- [ ] open\n\n[In the post]\n" in text
    assert "[[Linked]](https://other.example/)" in text
    assert "\nbad and a place, [good](https://other.example/)\n" in text


def test_an_address_of_a_theme_is_no_link_either() -> None:
    """Of HTML that no build has cleaned."""
    post = '<p><img src="data:image/gif;base64,AA/d" alt=""><a href="javascript:a(1)">no</a></p>'
    html = read_part(read(copy_letter(compose(post))), "html")
    (cell,) = LexborHTMLParser(html).css(".text")
    assert (cell.css("a, img"), cell.css("p")[0].text()) == ([], "no")


@pytest.mark.parametrize(
    ("slug", "lang", "direction"), [("hebrew", "he", "rtl"), ("japanese", "ja", "ltr")]
)
def test_a_post_in_another_language(
    letters: dict[str, bytes], slug: str, lang: str, direction: str
) -> None:
    """The post has its language and direction, and its letter those of the journal."""
    message = read(letters[slug])
    page = LexborHTMLParser(read_part(message, "html"))
    cell = page.css(".text")[0].attributes

    assert (cell["lang"], cell["dir"]) == (lang, direction)
    assert page.css("html")[0].attributes == {"lang": "en", "dir": "ltr"}
    assert message["Content-Language"] == lang
    if direction == "rtl":
        assert "border-right: 3px" in str(page.css("blockquote")[0].attributes["style"])


@pytest.mark.parametrize("code", ["de", "es", "fr", "he", "ja"])
def test_the_sentences_of_a_letter_are_those_of_the_journal(code: str) -> None:
    """All that the letter says by itself is in the journal's language, in text and HTML."""
    folder = ROOT / "theme" / "locale"
    assert (folder / code / CATALOGUE_PATH).is_file()
    language = load_language(code, compile_catalogue(code, [folder]))
    message = read(copy_letter(compose(site_language=language)))

    for said in (read_part(message, "plain"), read_part(message, "html")):
        assert not re.search("(?i)read on|this message|unsubscribe<|want", said)
        assert POSTAL in said


def test_an_english_post_of_a_journal_in_hebrew() -> None:
    """What runs to the left is the journal's own, and not the post."""
    post = "<blockquote><p>Said.</p></blockquote><table><tr><th>A</th></tr></table>"
    letter = compose(post, site_language=load_language("he", b""))
    page = LexborHTMLParser(read_part(read(copy_letter(letter)), "html"))
    styles = {name: str(page.css(name)[0].attributes["style"]) for name in (".small", ".text")}

    assert page.css("html")[0].attributes["dir"] == "rtl"
    assert "text-align: right" in styles[".small"]
    assert "text-align: left" in styles[".text"]
    assert "text-align: left" in str(page.css("th")[0].attributes["style"])
    assert "border-left: 3px" in str(page.css("blockquote")[0].attributes["style"])


LONG = {
    "many paragraphs": "<p>Some words &amp; more.</p>\n" * 80_000,
    "many letters of Hebrew": f"<p>{'שלום ' * 100}</p>\n" * 2_000,
    "one paragraph": f"<p>{'word ' * 400_000}</p>",
    "blanks": f"<p>{' ' * 2_000_000}</p><p>end</p>",
    "a list": f"<p>Begun.</p><ul>{'<li>one</li>' * 100_000}</ul>",
    "brackets": f"<pre>{'&lt;a &lt;img ' * 100_000}</pre>",
}


@pytest.mark.size("test")
@pytest.mark.parametrize("name", LONG)
def test_a_long_post_is_cut_at_the_end_of_a_paragraph(name: str) -> None:
    """Of two megabytes, a letter has whole paragraphs within the bound, and leads on."""
    octets = copy_letter(compose(LONG[name]))
    message = read(octets)
    page, text = LexborHTMLParser(read_part(message, "html")), read_part(message, "plain")
    shown = octets.rpartition(b"--=_letter\r\n")[2].partition(b"\r\n\r\n")[2]

    assert len(shown) <= MAX_HTML_OCTETS
    assert len(shown) > MAX_HTML_OCTETS * 0.9 or not name.startswith("many")
    assert "Read on at The Quiet Journal" in text
    assert [each.attributes["href"] for each in page.css(".rest a")] == [f"{SITE}/journal/post/"]
    # What is left is whole, or else the description alone.
    kept = [each.text() for each in page.css(".text p")]
    assert set(kept) <= {"Some words & more.", "שלום " * 100, "Begun."}
    assert len(page.css(".rest p")) == 1 + (not kept)  # the description stands in for them
    assert unescape(text).count("Some words & more.") == kept.count("Some words & more.")


def test_a_post_that_fits_is_whole() -> None:
    """Nothing leads on from a letter that has everything, whatever classes its author gave."""
    html = '<p class="rest">One.</p><p class="description" id="rest">Two.</p>'
    message = read(copy_letter(compose(html)))
    page = LexborHTMLParser(read_part(message, "html"))

    assert [each.text() for each in page.css(".text p")] == ["One.", "Two."]
    assert page.css("td.rest, [id]") == []
    assert "Read on at" not in read_part(message, "plain")


def test_the_colours_and_the_painting_of_the_journal() -> None:
    """A theme's colours are taken, its first of a name; the photograph has a colour behind it."""
    sheet = ":root{--paper:light-dark(#123456,#654321);} .x{--paper: light-dark(#000, #fff)}"
    letter = compose(site_style_sheet=sheet, site_painting=f"{SITE}/edge/picture.webp")
    html = read_part(read(copy_letter(letter)), "html")
    band = LexborHTMLParser(html).css(".band")[0].attributes

    assert "background-color: #123456" in html
    assert "background-color: #654321 !important" in html
    assert (band["background"], bool(band["bgcolor"])) == (f"{SITE}/edge/picture.webp", True)
    assert Path(str(band["background"])).name in str(band["style"])
