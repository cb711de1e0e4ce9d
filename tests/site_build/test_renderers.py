"""Outputs without a template: sitemap, llms.txt, auth.md, Markdown twins, as values."""

import json
import re
from datetime import timedelta

import pytest

from edge_api.auth.secrets import mint
from edge_api.schema.credentials import CREDENTIAL_SCOPES, PREFIXES, SCOPES, SecretKind
from edge_api.schema.paths import DOCS_PAGES
from site_build.outputs import agents, markdown
from site_build.outputs.agents import render_auth, render_sitemap
from site_build.outputs.feed import Item
from site_build.outputs.markdown import escape_text
from site_build.site import UNDATED, Identity, Policy, read_policy, select_public
from tests.site_build.records import DAY, ME, SITEMAP, make, parse, record


def test_the_sitemap_lists_every_page_once() -> None:
    """Home, lists, pages, tags and posts are there, with the dates of the content."""
    documents = [
        make("new", DAY + timedelta(days=1), tags=("X",)),
        make("old", updated=DAY + timedelta(days=2), tags=("X",)),
        make("about", UNDATED, kind="page", path="pages/about.md"),
        make("draft", draft=True),
    ]

    text = render_sitemap(select_public(ME, documents, DAY + timedelta(days=9)))
    rows = {row.findtext(f"{SITEMAP}loc"): row.findtext(f"{SITEMAP}lastmod") for row in parse(text)}

    assert rows == {
        "https://journal.test/": "2026-03-03T00:00:00Z",
        "https://journal.test/journal/": "2026-03-03T00:00:00Z",
        "https://journal.test/tags/": "2026-03-03T00:00:00Z",
        "https://journal.test/archive/": "2026-03-03T00:00:00Z",
        "https://journal.test/about/": None,
        "https://journal.test/tags/x/": "2026-03-03T00:00:00Z",
        "https://journal.test/journal/new/": "2026-03-02T00:00:00Z",
        "https://journal.test/journal/old/": "2026-03-03T00:00:00Z",
        **{f"https://journal.test{path}": None for path in DOCS_PAGES},
    }


def test_llms_txt_has_the_form_of_its_norm() -> None:
    """A heading, a quotation, then sections of links to the Markdown of each page."""
    documents = [make("a", title="[Brackets] *here*"), make("about", UNDATED, kind="page")]

    lines = agents.render_llms(select_public(ME, documents, DAY), Policy()).splitlines()

    assert lines[0] == "# A & B"
    assert lines[2] == "> Of <things>."
    assert [line for line in lines if line.startswith("#")] == [
        "# A & B",
        "## Pages",
        "## Posts",
        "## For programs",
        "## Optional",
    ]
    url = "https://journal.test/journal/a/index.md"
    assert f"- [\\[Brackets\\] \\*here\\*]({url}) (2026-03-01): About a." in lines
    assert "- [Title of about](https://journal.test/about/index.md): About about." in lines


@pytest.mark.parametrize(
    ("given", "count", "sentence"),
    [(2, 2, "All 2 posts, newest first."), (2, 7, "The newest 2 of 7 posts, newest first;")],
)
def test_the_full_text_says_how_much_it_holds(given: int, count: int, sentence: str) -> None:
    """A reader of the full text knows whether there is more."""
    text = agents.render_llms_full(
        ME, [Item(record(f"p-{number}"), "en") for number in range(given)], count
    )

    assert sentence in text
    assert text.count("Words of p-") == given


def test_a_markdown_twin_has_the_metadata_and_the_text() -> None:
    """Title, description, days, tags and source are above the author's Markdown."""
    post = make("a", updated=DAY + timedelta(days=1), tags=("x", "y_z"))

    text = markdown.render_document(ME, post, "Some *Markdown*.\n", "journal/a/")

    assert text == (
        "# Title of a\n\n> About a.\n\n- Published: 2026-03-01\n- Updated: 2026-03-02\n"
        "- Tags: x, y\\_z\n- Language: en\n- Source: https://journal.test/journal/a/\n\n"
        "Some *Markdown*.\n"
    )


def test_a_page_without_a_date_shows_none() -> None:
    """The epoch stands for no date, and is never printed."""
    text = markdown.render_document(ME, make("about", UNDATED, kind="page"), "Words.", "about/")

    assert "1970" not in text
    assert "Published" not in text


def test_leaves_lead_to_each_other() -> None:
    """A leaf in the middle of a list names its neighbours; the first has no newer one."""
    middle = markdown.render_list_page(
        ME, markdown.ListPage("Journal", "journal/", 2, 3, [make("a")])
    )
    first = markdown.render_list_page(
        ME, markdown.ListPage("Journal", "journal/", 1, 3, [make("a")])
    )

    assert "# Journal, page 2 of 3" in middle
    assert "[Newer](https://journal.test/journal/index.md)" in middle
    assert "[Older](https://journal.test/journal/page/3/index.md)" in middle
    assert "Newer" not in first


def test_an_empty_site_has_every_overview() -> None:
    """A journal without posts says so."""
    empty = select_public(ME, [], DAY)

    assert "None yet." in markdown.render_home(empty)
    assert "No tags yet." in markdown.render_tags(ME, empty.tags)
    assert "No posts yet." in markdown.render_archive(ME, empty.posts)
    assert "None yet." in agents.render_llms(empty, Policy())


def test_posts_come_newest_first_and_by_slug() -> None:
    """The order is that of the API."""
    later = DAY + timedelta(days=1)
    documents = [make("b"), make("c", later), make("a"), make("z", DAY + timedelta(days=50))]

    ordered = select_public(ME, documents, DAY + timedelta(days=40)).posts

    assert [post.slug for post in ordered] == ["c", "a", "b"]


def test_spellings_of_one_tag_share_a_page() -> None:
    """The spelling used most often names the tag; each post counts once."""
    documents = [
        make("a", tags=("light",)),
        make("b", tags=("Light", "LIGHT")),
        make("c", tags=("light", "Dark")),
    ]

    tags = select_public(ME, documents, DAY).tags

    assert [(tag.name, tag.slug, len(tag.posts)) for tag in tags] == [
        ("Dark", "dark", 1),
        ("light", "light", 3),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b", "a\\_b"),
        ("[x](y)", "\\[x\\](y)"),
        ("`c` <d>", "\\`c\\` \\<d\\>"),
        ("p\\q", "p\\\\q"),
    ],
)
def test_plain_text_stays_plain(text: str, expected: str) -> None:
    """Signs that Markdown would read are escaped."""
    assert escape_text(text) == expected


def test_auth_md_has_the_sections_that_agents_look_for() -> None:
    """Its heading names it, the sections are in their order, and every scope is explained."""
    lines = render_auth(ME, Policy()).splitlines()

    assert lines[0] == "# auth.md: access to A & B"
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == [
        "Discover",
        "Pick a method",
        "Register",
        "Claim",
        "Exchange",
        "Use the access_token",
        "Send a lead",
        "Errors",
        "Revocation",
    ]
    for scope, sentence in SCOPES.items():
        (row,) = [line for line in lines if line.startswith(f"| `{scope}` | {sentence} | `")]
        works_with = {kind for kind, scopes in CREDENTIAL_SCOPES.items() if scope in scopes}
        assert set(re.findall(r"`(\w+)`", row.split(" | ")[2])) == works_with


def test_auth_md_says_what_is_not_supported() -> None:
    """The methods known to agents that do not work here are named as such."""
    text = " ".join(render_auth(ME, Policy()).split())

    assert "only `anonymous` is supported" in text
    assert "`identity_assertion` (with an id-jag) and `service_auth` are not" in text


@pytest.mark.parametrize("access", ["off", "on"])
def test_auth_md_says_what_is_given(access: str) -> None:
    """Posts alone unless a person chooses more, for 90 days; the form is named where it is."""
    text = " ".join(render_auth(ME, read_policy({"ACCESS_REQUESTS": access})).split())

    assert "Without `scopes` you ask for `posts:read`, and with an access token for `mcp`" in text
    assert "That is what is given, whatever you ask for, unless the person chooses more" in text
    assert "ends 90 days after the approval" in text
    assert ("People do the same at" in text) is ("#access" in text) is (access == "on")


@pytest.mark.parametrize("closed", ["false", "true"])
def test_both_texts_show_a_whole_lead(closed: str) -> None:
    """All four members, as JSON, and whether a key is needed for it."""
    policy = read_policy({"LEADS_REQUIRE_CREDENTIAL": closed})
    auth, llms = render_auth(ME, policy), agents.render_llms(select_public(ME, [], DAY), policy)
    shown = auth.partition("```http\nPOST /api/public/v1/leads\n")[2].partition("\n```")[0]
    header, _, body = shown.partition("\n\n")
    (example,) = re.findall(r"`(\{.*?\})`", llms)

    assert json.loads(body) == json.loads(example)
    assert list(json.loads(example)) == ["name", "email", "budget_tier", "message"]
    assert ("X-API-Key: <API_KEY>" in header) is (closed == "true")
    assert ("A key with `leads:write` is needed." in auth) is (closed == "true")
    assert f"a lead, needs {'a' if closed == 'true' else 'no'} key and" in llms


@pytest.mark.parametrize("closed", ["false", "true"])
def test_auth_md_says_what_needs_no_credential(closed: str) -> None:
    """Leads among it, unless the setting closes them."""
    text = render_auth(ME, read_policy({"LEADS_REQUIRE_CREDENTIAL": closed}))
    paragraph = " ".join(text.split("\n\n")[1].split())
    is_open, _, needs = paragraph.partition("Open to everybody")[2].partition("For posts")

    assert "`GET /api/public/v1/search`" in is_open
    assert "`POST /api/public/v1/analyze`" in is_open
    assert ("`POST /api/public/v1/leads`" in is_open) is (closed == "false")
    assert "a credential is needed" in needs
    assert "Both need a credential" not in text


def test_auth_md_shows_each_credential_at_its_own_endpoint() -> None:
    """An access token at MCP, an API key at REST."""
    section = render_auth(ME, Policy()).split("## Use the access_token")[1].split("## ")[0]
    calls = re.findall(r"```http\n(\S+ \S+)\n(.*)\n", section)

    assert calls == [
        ("POST /api/public/mcp", "Authorization: Bearer <ACCESS_TOKEN>"),
        ("POST /api/public/mcp", "Authorization: Bearer <ACCESS_TOKEN>"),
        ("GET /api/public/v1/posts", "X-API-Key: <API_KEY>"),
    ]


def test_auth_md_is_markdown_whose_tables_are_whole() -> None:
    """Each row of a table has the cells of its head, whatever the site is called."""
    odd = Identity("https://journal.test", "A `B` [C](d) | E", "", "", "en")
    text = render_auth(odd, Policy())

    assert text.splitlines()[0] == "# auth.md: access to A \\`B\\` \\[C\\](d) | E"
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        assert len({row.count(" | ") for row in table.splitlines()}) == 1


@pytest.mark.parametrize("kind", PREFIXES)
def test_auth_md_finds_our_secrets(kind: SecretKind) -> None:
    """The regular expression that scanners are given finds every kind of secret in a text."""
    (pattern,) = re.findall(r"```text\n(.*)\n```", render_auth(ME, Policy()))
    secret = mint(kind)

    found = re.search(pattern, f'{{"key": "{secret}"}}')
    assert found
    assert found[0] == secret
    assert not re.search(pattern, f"{secret[:-1]}-")
