"""Exports of Ghost: small ones written here, and those of real journals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from site_build.importers.detect import read_journal
from site_build.importers.ghost import read_ghost
from site_build.importers.imported import Imported, UnreadableJournal
from tests.shared_material import SHARED, find_sites

Export = Callable[..., Imported]


def post(**fields: Any) -> dict[str, Any]:
    """Return a row of the table of posts."""
    return {
        "id": "p1",
        "title": "Hello",
        "slug": "hello",
        "html": "<p>Words.</p>",
        "type": "post",
        "status": "published",
        "visibility": "public",
        "published_at": "2024-02-19T11:37:21.000Z",
    } | fields


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Return what reads an export with the tables given."""

    def read(*posts: dict[str, Any], **tables: list[dict[str, Any]]) -> Imported:
        data = {"posts": [*posts], **tables}
        (tmp_path / "journal.ghost.json").write_text(json.dumps({"db": [{"data": data}]}))
        return read_ghost(tmp_path)

    return read


def test_a_post_comes_with_all_that_it_had(export: Export) -> None:
    """Tags and authors in their order, picture, summary, addresses; never who may sign in."""
    journal = export(
        post(
            html='<p><img src="__GHOST_URL__/content/images/size/w600/2024/a.jpg" alt="A"></p>',
            feature_image="__GHOST_URL__/content/images/2024/b.jpg",
            custom_excerpt="Short",
        ),
        post(id="p2", slug="about", type="page"),
        posts_meta=[{"id": "m1", "post_id": "p1", "feature_image_alt": "B", "email_only": 0}],
        tags=[
            {"id": "t1", "name": "One", "slug": "one"},
            {"id": "t2", "name": "Two", "slug": "two"},
            {"id": "t3", "name": "#internal", "slug": "hash-internal"},
        ],
        posts_tags=[
            {"post_id": "p1", "tag_id": "t1", "sort_order": 1},
            {"post_id": "p1", "tag_id": "t2", "sort_order": 0},
            {"post_id": "p1", "tag_id": "t3", "sort_order": 2},
            {"post_id": "p1", "tag_id": "gone", "sort_order": 3},
        ],
        users=[{"id": "u1", "name": "Jo", "slug": "jo", "email": "jo@e.org", "password": "$2a$"}],
        posts_authors=[{"post_id": "p1", "author_id": "u1", "sort_order": 0}],
        settings=[
            {"key": "title", "value": "My journal"},
            {"key": "locale", "value": "fr"},
            {"key": "timezone", "value": "Europe/Paris"},
            {"key": "navigation", "value": '[{"label":"About","url":"/about/"}]'},
        ],
    )

    text, page = journal.texts
    assert (journal.title, journal.lang, journal.timezone) == ("My journal", "fr", "Europe/Paris")
    assert (journal.author, journal.menu) == ("Jo", [("About", "/about/")])
    assert (text.address, text.tags, text.author) == ("/hello/", ["Two", "One"], "Jo")
    assert (text.image, text.image_alt) == ("/content/images/2024/b.jpg", "B")
    assert (text.body, text.description) == ("![A](/content/images/2024/a.jpg)\n", "Short")
    assert text.date is not None
    assert text.date.isoformat() == "2024-02-19T12:37:21+01:00"
    assert (page.kind, page.address) == ("page", "/about/")
    assert {
        "/tag/one/": "tag:One",
        "/tag/one/rss/": "feed:One",
        "/author/jo/": "posts:",
        "/rss/": "feed:",
    }.items() <= journal.redirects.items()
    assert "jo@e.org" not in repr(journal)
    assert "$2a$" not in repr(journal)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"visibility": "members"}, "members"),
        ({"visibility": "paid"}, "paying"),
        ({"visibility": "tiers"}, "paying"),
        ({"status": "scheduled"}, "scheduled"),
        ({"status": "sent"}, "e-mail"),
        ({"email_only": 1}, "e-mail"),
        ({"status": "draft", "published_at": None}, None),
    ],
)
def test_unpublished_texts_become_drafts(
    export: Export, fields: dict[str, Any], reason: str | None
) -> None:
    """Nothing of it gets an address, and a finding says why."""
    journal = export(post(**fields))

    [text] = journal.texts
    assert (text.status, text.address) == ("draft", "")
    assert [reason in each.what for each in journal.findings if reason] == [True] * bool(reason)


@pytest.mark.parametrize(
    "document",
    [
        {"lexical": '{"root":{"children":[{"children":[{"text":"A \\"b\\"","type":"text"}]}]}}'},
        {"mobiledoc": '{"sections":[[1,"p",[[0,[],0,"A \\"b\\""]]]]}'},
    ],
)
def test_a_text_without_html_keeps_its_words(export: Export, document: dict[str, str]) -> None:
    """A finding says that its formatting is lost."""
    journal = export(post(html=None, **document))

    assert journal.texts[0].body == 'A "b"\n'
    assert ["formatting" in each.what for each in journal.findings] == [True]


def test_files_beside_an_export_are_read(export: Export, tmp_path: Path) -> None:
    """Pictures without smaller copies, members, redirects; patterns are named."""
    for name in ("content/images/2024/a.jpg", "content/images/size/w600/2024/a.jpg"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "my-members.csv").write_text(
        "id,email,name,note,subscribed_to_emails\n"
        "1,a@e.org,Ann,,true\n2,,Nobody,,true\n3,b@e.org,Bo,Friend,false\n"
    )
    (tmp_path / "redirects.json").write_text(
        json.dumps([{"from": "^\\/old\\/?$", "to": "/new/"}, {"from": "^/a/(.*)$", "to": "/b/$1"}])
    )
    (tmp_path / "redirects.yaml").write_text("301:\n  /x/: /y/\n302:\n  /u: /v\n")

    journal = export(post())

    assert [*journal.files] == ["content/images/2024/a.jpg"]
    assert [each["email"] for each in journal.members] == ["a@e.org", "b@e.org"]
    assert [each["note"] for each in journal.members] == ["", "wants no mail. Friend"]
    assert {"/old": "/new/", "/old/": "/new/", "/x/": "/y/", "/u": "/v"}.items() <= (
        journal.redirects.items()
    )
    assert [each.source for each in journal.findings] == ["redirects.json"]


def test_addresses_that_an_owner_chose(export: Export, tmp_path: Path) -> None:
    """Routes say them by tags; a page and what no route names have the usual one."""
    tables: dict[str, Any] = {
        "tags": [{"id": "t1", "name": "Talk", "slug": "talk"}],
        "posts_tags": [{"post_id": "p2", "tag_id": "t1"}],
        "settings": [{"key": "permalinks", "value": "/:year/:month/:slug/"}],
    }
    posts = post(), post(id="p2", slug="second"), post(id="p3", slug="about", type="page")

    plain = export(*posts, **tables)
    (tmp_path / "routes.yaml").write_text(
        "routes:\n  /x/: page\ncollections:\n"
        "  /talks/:\n    permalink: /talks/{slug}/\n    filter: tag:talk\n"
        "  /:\n    permalink: /{year}/{slug}/\n    filter: tag:-talk\n"
        "taxonomies:\n  tag: /topic/{slug}/\n"
    )
    routed = export(*posts, **tables)

    assert [text.address for text in plain.texts] == [
        "/2024/02/hello/",
        "/2024/02/second/",
        "/about/",
    ]
    assert [text.address for text in routed.texts] == ["/2024/hello/", "/talks/second/", "/about/"]
    assert {"/topic/talk/": "tag:Talk", "/talks/": "posts:"}.items() <= routed.redirects.items()
    assert ["/x/" in each.what for each in routed.findings] == [True]


@pytest.mark.parametrize("routes", ["routes:\n", "collections:\n  /:\n    permalink: /{slug}/\n"])
def test_routes_as_every_journal_has_them(export: Export, tmp_path: Path, routes: str) -> None:
    """They change nothing, and are no finding."""
    (tmp_path / "routes.yaml").write_text(routes)

    journal = export(post())

    assert [text.address for text in journal.texts] == ["/hello/"]
    assert not journal.findings


def test_an_old_post_has_its_author_in_its_row(export: Export) -> None:
    """Ghost had no table of authors before version 1.22."""
    journal = export(post(author_id=1), users=[{"id": 1, "name": "Jo", "slug": "jo"}])

    assert journal.texts[0].author == "Jo"


def test_code_of_an_owner_is_named(export: Export) -> None:
    """Code that a post added to its page is no text, and is left out with a finding."""
    journal = export(post(codeinjection_head="<style>x</style>"))

    assert ["code" in each.what for each in journal.findings] == [True]


@pytest.mark.parametrize(
    "document", ["", "{", "[]", '{"db": []}', '{"db": [{"data": 5}]}', "[" * 9999]
)
def test_an_incomplete_export_is_refused(tmp_path: Path, document: str) -> None:
    """A sentence says so."""
    path = tmp_path / "export.json"
    path.write_text(document)

    with pytest.raises(UnreadableJournal, match=r"export\.json is no journal of ghost"):
        read_journal(path, "ghost")


def test_one_bad_post_stops_no_other(export: Export) -> None:
    """It is named as left out."""
    journal = export(post(published_at="soon", title="Bad"), post(id="p2"))

    assert [text.title for text in journal.texts] == ["Hello"]
    assert [(each.kind, "Bad" in each.what) for each in journal.findings] == [("left out", True)]


@pytest.mark.size("test")
@pytest.mark.parametrize("name", find_sites("ghost-"))
def test_journals_of_others(name: str) -> None:
    """Each text that was public has the address that it had."""
    folder = SHARED / "sites" / name
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    for_members = {each["url"] for each in expected["items"] if each.get("visibility")}

    journal = read_ghost(folder / "source" / "ghost-export.json")

    found = [text.address for text in journal.texts if text.status == "published"]
    assert sorted(found) == sorted(set(expected["urls"]) - for_members)
    assert not [each for each in journal.findings if each.kind == "left out"]
    assert "__GHOST_URL__" not in "".join(text.body + text.image for text in journal.texts)


def test_any_visibility_but_public_makes_a_draft(export: Export) -> None:
    """Tiers of any name and blocks for members are not made public."""
    journal = export(
        post(visibility="tier:gold"),
        post(id="p2", slug="b", html="<p>A</p><!--kg-gated-block:begin nonMember:false -->"),
        post(id="p3", slug="c", visibility=""),
    )
    assert [text.status for text in journal.texts] == ["draft", "draft", "published"]
    assert all("members alone" in each.what for each in journal.findings[:2])


def test_a_link_out_of_the_folder_is_not_followed(export: Export, tmp_path: Path) -> None:
    """Even where the folder of pictures itself is the link."""
    (tmp_path / "secret" / "images").mkdir(parents=True)
    (tmp_path / "secret" / "images" / "a.png").write_text("x")
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "content").symlink_to(tmp_path / "secret")
    export(post())
    (tmp_path / "journal.ghost.json").rename(tmp_path / "journal" / "journal.ghost.json")
    assert read_ghost(tmp_path / "journal").files == {}
