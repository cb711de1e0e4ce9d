"""A journal in a language of its own: whatever visitors see of it is in that language.

The language is made up: each sentence of ours is between ⟦ and ⟧, and what the journal says
itself is Greek. So a Latin word outside the signs is one that nobody could translate.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from babel.messages.pofile import read_po, write_po
from selectolax.lexbor import LexborHTMLParser

from edge_api.mail.messages import MESSAGE_TYPES, MailTemplates
from edge_api.schema.template_language import read_language
from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port
from tests.edge.mail.test_compose import UNSUBSCRIBE, VALUES
from tests.edge.oauth.conftest import challenge_of, new_verifier
from tests.patience import patience

pytestmark = pytest.mark.size("test")

HTML = {"Accept": "text/html"}
FORM = {**HTML, "Content-Type": "application/x-www-form-urlencoded"}
NAMES = {"API", "llms", "txt"}
"""Words of a page's foot that are names."""
SETTINGS = """
from site_build.default_settings import *
SITENAME, SITESUBTITLE, AUTHOR = "Βιβλίο", "Για βιβλία.", "Άννα"
DEFAULT_LANG, DEFAULT_PAGINATION = "eo", 2
"""
POST = """---
title: Κείμενο {n}
slug: k-{n}
date: 2026-0{n}-01
updated: 2026-0{n}-02
tags: [χαρτί, μελάνι]
series: Σειρά
{more}
---

Λέξη πρώτη.[^1] Λέξη δεύτερη.

> [!NOTE]
> Σημείωση.

- [ ] ένα
- [x] δύο

| ένα | δύο |
| - | - |
| 1 | 2 |

## Ένα
## Δύο
## Τρία

[^1]: Κάτω.
"""
PAGE = "---\ntitle: {title}\ndescription: Λέξη.\n---\n\nΛέξη.\n"


@dataclass
class Walk:
    """The served journal, and its build."""

    edge: ServedEdge
    build: Path
    url: str
    installation: Installation

    def page(self, path: str, **form: str) -> str:
        """Return a page; with a form, what it is answered with."""
        return self.send(path, FORM, **form) if form else self.edge.get(path, HTML)[2].decode()

    def send(self, path: str, headers: dict[str, str], **form: str) -> str:
        """Return the answer to a form."""
        return self.edge.post(path, urlencode(form).encode(), headers)[2].decode()


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Serve a small journal in the language of signs."""
    folder = tmp_path_factory.mktemp("signs")
    place = folder / "locale" / "eo" / "LC_MESSAGES"
    place.mkdir(parents=True)
    with (ROOT / "theme" / "locale" / "messages.pot").open("rb") as file:
        signs = read_po(file, locale="eo")
    for message in signs:
        if message.id:
            forms = message.id if isinstance(message.id, tuple) else (message.id,)
            marked = tuple(f"⟦{each}⟧" for each in forms)
            message.string = marked if len(forms) > 1 else marked[0]
    with (place / "messages.po").open("wb") as file:
        write_po(file, signs)
    for name, title in (("about", "Εμείς"), ("contact", "Γράψτε")):
        (folder / "content" / "pages").mkdir(parents=True, exist_ok=True)
        text = PAGE.format(title=title)
        (folder / "content" / "pages" / f"{name}.md").write_text(text, encoding="utf-8")
    for n in range(1, 6):
        more = "featured: true" if n == 1 else ""
        (folder / "content" / f"{n}.md").write_text(POST.format(n=n, more=more), encoding="utf-8")
    (folder / "pelicanconf.py").write_text(SETTINGS, encoding="utf-8")
    port = free_port()
    settings = {
        "PORT": str(port),
        "SITE_URL": f"http://127.0.0.1:{port}",
        "DATABASE_URL": f"sqlite:///{folder}/edge.db",
        "BUILD_DIR": str(folder / "build"),
        "CONTENT_DIR": str(folder / "content"),
        "ACCESS_REQUESTS": "on",
        "RATE_LEADS": "0",
        "RATE_TOKEN": "0",
    }
    installation = Installation(folder, settings)
    made = subprocess.run(
        [sys.executable, "-m", "site_build", "build", "--now", "2026-11-01T00:00:00Z"],
        cwd=folder,
        env={**os.environ, **installation.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(600),
    )
    assert made.returncode == 0, made.stdout + made.stderr
    with installation.serving() as edge:
        build = (folder / "build" / "current").resolve()
        yield Walk(edge, build, settings["SITE_URL"], installation)


def without_signs(text: str) -> str:
    """Return a text without what is between the signs, however deep."""
    while (shorter := re.sub(r"⟦[^⟦⟧]*⟧", " ", text)) != text:
        text = shorter
    assert not set(text) & set("⟦⟧"), text
    return text


def list_words(text: str) -> list[str]:
    """Return the words of a text that nobody could translate."""
    return [word for word in re.findall("[A-Za-z]{2,}", without_signs(text)) if word not in NAMES]


def list_foreign(page: str) -> list[str]:
    """Return the same of a page, of its attributes, too; code, names and instants count not."""
    tree = LexborHTMLParser(page)
    hidden = "script, style, code, pre, time, .trap, input[type=hidden]"
    for each in tree.css(hidden):
        each.decompose()
    found = [tree.root.text(separator=" ") if tree.root else ""]
    for each in tree.css("*"):
        for name, value in each.attributes.items():
            is_said = name in {"aria-label", "title", "alt", "placeholder"}
            is_about = each.tag == "meta" and name == "content" and " " in (value or "")
            is_size = (each.attributes.get("name") or "") in {
                "viewport",
                "color-scheme",
                "supported-color-schemes",
            }
            if is_said or (is_about and not is_size):
                found.append(value or "")
    return [word for text in found for word in list_words(text)]


def test_the_site(walk: Walk) -> None:
    """Each page that is built, feeds and the description of the search."""
    found = {}
    for path in sorted((walk.build / "site").rglob("*.html")):
        if words := list_foreign(path.read_text(encoding="utf-8")):
            found[path.relative_to(walk.build).as_posix()] = words
    for name in ("feed.xml", "feed.json", "opensearch.xml"):
        text = (walk.build / "site" / name).read_text(encoding="utf-8")
        assert "⟦" in text, name
    described = json.loads((walk.build / "site" / "feed.json").read_bytes())["description"]

    assert found == {}
    assert list_words(described) == []


def test_pages_of_the_edge(walk: Walk) -> None:
    """The search, forms with their faults, what is thanked for, and errors."""
    asked = {"name": "Ά", "email": "nobody", "message": "λ" * 5000, "rest": ""}
    access = {"name": "Ά", "email": "a@example.org", "purpose": "Για.", "type": "both"}
    requested = walk.page("/contact/access/", **access)
    token = re.search("fe_cl_[0-9A-Za-z]+", requested)
    assert token
    pages = {
        "search": walk.page("/search"),
        "found": walk.page(f"/search?{urlencode({'q': 'λέξη'})}"),
        "near": walk.page(f"/search?{urlencode({'q': 'λέξη ζζζ'})}"),
        "nothing": walk.page(f"/search?{urlencode({'q': 'ζζζ'})}"),
        "about a post": walk.page("/contact/?about=k-1"),
        "faults": walk.page("/contact/", **asked),
        "long": walk.page("/contact/", **{**asked, "message": "λ" * 3000}),
        "empty": walk.page("/contact/", name="\x01", email="", message="\u200b"),
        "thanks": walk.page("/contact/thanks/"),
        "requested": requested,
        "access faults": walk.page("/contact/access/", name="", purpose="", type="both"),
        "claim": walk.page("/contact/access/claim/"),
        "pending": walk.page("/contact/access/claim/", claim_token=token[0]),
        "unknown claim": walk.page("/contact/access/claim/", claim_token="0"),
        "unsubscribe": walk.page("/unsubscribe?token=0"),
        "missing": walk.page("/nowhere/"),
        "other method": walk.page("/search", q="0"),
        "other type": walk.edge.post("/contact/", b"{}", {**HTML, "Content-Type": "text/plain"})[
            2
        ].decode(),
        "other site": walk.edge.post("/contact/", b"", {**FORM, "Sec-Fetch-Site": "cross-site"})[
            2
        ].decode(),
        "no client": walk.page("/api/public/oauth/authorize"),
        "consent": walk.page(ask_consent(walk)),
    }
    found = {name: words for name, page in pages.items() if (words := list_foreign(page))}

    assert found == {}
    assert all("⟦" in page for page in pages.values()), [
        n for n, p in pages.items() if "⟦" not in p
    ]


def ask_consent(walk: Walk) -> str:
    """Return the address of the question whether a program may have access."""
    redirect = "https://client.example/"
    client = {"client_name": "Πρόγραμμα", "redirect_uris": [redirect]}
    given = {"Content-Type": "application/json"}
    body = walk.edge.post("/api/public/oauth/register", json.dumps(client).encode(), given)[2]
    asked = {
        "response_type": "code",
        "client_id": json.loads(body)["client_id"],
        "redirect_uri": redirect,
        "code_challenge": challenge_of(new_verifier()),
        "code_challenge_method": "S256",
        "scope": "posts:read leads:read mcp",
        "resource": f"{walk.url}/api/public/mcp",
    }
    return f"/api/public/oauth/authorize?{urlencode(asked)}"


def test_the_form_for_scripts(walk: Walk) -> None:
    """A script gets the same sentences, each after the name of its field."""
    headers = {**FORM, "Accept": "application/json"}
    status, _, body = walk.edge.post("/contact/", b"name=&email=x&message=1", headers)

    said = json.loads(body)["error"]
    assert status == 400
    assert list_words(re.sub(r"(^|; )[a-z_]+: ", " ", said)) == []
    assert "⟦must not be empty⟧" in said


@pytest.mark.parametrize("approved", [True, False])
def test_mail_to_visitors(walk: Walk, approved: bool) -> None:  # noqa: FBT001
    """Subject, text and HTML of each message; the owner's stay English."""
    language = read_language(walk.build)
    site = {"site_title": "Βιβλίο", "site_url": "https://1.test"}
    for name, message_type in MESSAGE_TYPES.items():
        values = {**VALUES[name], **site}
        if "answer" in values:  # what people write is in their own language
            values["answer"] = {"subject": "1", "body": "2"}
            values["quoted"] = {**values["quoted"], "name": "3", "text": "4"}
        if "approved" in values:
            values |= {"approved": approved, "claim_uri": "https://1.test/"}
        unsubscribe = UNSUBSCRIBE if message_type.unsubscribable else None
        subject, text, html = MailTemplates().render(message_type, values, unsubscribe, language)
        if not message_type.to_visitor:
            assert "⟦" not in subject + text + html, name
            continue
        plain = re.sub(r"https?://\S+|(?s:curl .*?\}')|Content-Type\S*|UTC", " ", text)
        assert list_words(subject) == []
        assert list_words(re.sub(r"\d.*? UTC", " ", plain)) == [], name
        shown = re.sub(r"https?://[^\s<]+|UTC", " ", html)
        assert [w for w in list_foreign(shown) if w not in {"januaro", "junio", "de"}] == [], name
        assert 'lang="eo"' in html
