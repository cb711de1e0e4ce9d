"""A text of a credential whose HTML aims at the desk is not published, previewed or shared."""

from pathlib import Path

import pytest

from edge_api.db.problems import Problem
from edge_api.operations import DESK
from edge_api.schema.writing import Operation, WriteAnswer, WriteRequest
from edge_api.writing.service import Writing
from tests.edge.conftest import EdgeMaker, RunningEdge, run_build
from tests.edge.engines import ON_SQLITE
from tests.edge.writing.attacks import AFTER_ALL, SOURCES, make_journal, read_tree
from tests.edge.writing_process import writing

pytestmark = ON_SQLITE
ROUTES = sorted({each.path.replace("{", "").replace("}", "") for each in DESK})
FORMS = "\n".join(
    f'<form method="post" action="{route}"><button name="x" value="y">Read on</button></form>\n'
    for route in ROUTES
)
REFUSED = (
    FORMS,
    '<form id="f" action="/desk/access/keys/" method="post"></form><button form="f">On</button>',
    '<input type="image" formaction="/desk/access/keys/" formmethod="post" alt="Read on">',
    '<input type="checkbox" name="scope" value="posts:publish">',
    '<textarea name="scope">posts:publish</textarea>',
    '<select name="scope"><option selected>posts:publish</option></select>',
    '<base href="https://elsewhere.example/">',
    '<base target="_top">',
    '<meta http-equiv="refresh" content="0; url=/desk/sign-out/">',
    '<link rel="stylesheet" href="https://elsewhere.example/x.css">',
    "<style>body { display: none }</style>",
    '<object data="/desk/"></object>',
    '<embed src="/desk/">',
    '<script>fetch("/desk/access/keys/", { method: "POST" })</script>',
    '<script src="/desk/desk.js"></script>',
    '<a href="javascript:alert(1)">Read on</a>',
    '<a href="data:text/html,x">Read on</a>',
    '<a href="/journal/" ping="/desk/sign-out/">Read on</a>',
    '<svg><a href="/desk/"><text>Read on</text></a></svg>',
    '<math><mtext><form action="/desk/" method="post"></form></mtext></math>',
    '<template><form action="/desk/"></form></template>',
    '<noscript><p title="</noscript><form action=/desk/ method=post>"></noscript>',
    '<dialog open><button formaction="/desk/">x</button></dialog>',
    '<FORM ACTION="/desk/access/keys/" METHOD="POST"><BUTTON>Read on</BUTTON></FORM>',
    '<form\naction="/desk/access/keys/"\nmethod="post"\n>',
)
CLEANED = (
    '<iframe src="/desk/"></iframe>',
    '<iframe srcdoc="&lt;form method=post action=/desk/access/keys/&gt;"></iframe>',
    '<img src="/images/cover.png" alt="x" onerror="alert(1)">',
    '<p style="position: fixed; inset: 0">Over all</p>',
)
"""Texts that are published without what could do harm."""
HARM = (b"<iframe", b"srcdoc", b"onerror", b"position: fixed")


async def ask(edge: RunningEdge, operation: Operation, slug: str, version: str) -> WriteAnswer:
    """Return the answer to a request of the owner at the desk. Raises Problem."""
    now = edge.service.clock().replace(microsecond=0)
    base = version.strip('"')
    request = WriteRequest(
        operation=operation, author="", may_publish=True, asked_at=now, slug=slug, base=base
    )
    asked: WriteAnswer = await edge.service[Writing].ask(request)
    return asked


async def test_hostile_html_reaches_no_reader(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """Neither a credential nor the owner publishes it, and neither sees or shares it as a page."""
    content, output = make_journal(tmp_path), tmp_path / "build"
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(output)}
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, content, output, "http://journal.test"):
            drafter, publisher = await edge.key("posts:draft"), await edge.key("posts:publish")
            refused = []
            for number, markup in enumerate((*REFUSED, *CLEANED)):
                text = f"---\ntitle: Hostile\n---\n\nA word before.\n\n{markup}\n\nA word after.\n"
                slug = f"hostile-{number}"
                sent = {"markdown": text, "slug": slug}
                async with edge.ask("POST", SOURCES, drafter, json=sent) as answer:
                    assert answer.status == 200, await answer.text()
                    version = answer.headers["ETag"]
                where, named = f"{SOURCES}/{slug}/publish", {"If-Match": version}
                async with edge.ask("POST", where, publisher, json={}, headers=named) as answer:
                    if answer.status == 409:
                        refused.append(markup)
                for operation in ("publish", "preview", "share") if markup in REFUSED[::6] else ():
                    with pytest.raises(Problem, match="HTML that only the owner can publish"):
                        await ask(edge, operation, slug, version)
            assert refused == [*REFUSED]
    run_build(content, tmp_path / "after", AFTER_ALL)
    site = read_tree(tmp_path / "after/current/site")
    pages = {name: page for name, page in site.items() if name.endswith("html")}
    assert len([name for name in pages if "hostile" in name]) == len(CLEANED)
    assert [name for name, page in pages.items() if any(each in page for each in HARM)] == []


async def test_a_shared_page_sends_no_form(make_edge: EdgeMaker, tmp_path: Path) -> None:
    """The owner's own HTML may have forms: browsers send none of a share."""
    content, output = make_journal(tmp_path), tmp_path / "build"
    (content / "posts/begun.md").write_text(
        f"---\ntitle: Begun\nslug: begun\ndate: 2026-01-01\nstatus: draft\n---\n\nNo.\n\n{FORMS}"
    )
    folders = {"CONTENT_DIR": str(content), "BUILD_DIR": str(output)}
    async with make_edge(WRITING="on", **folders) as edge:
        with writing(tmp_path, content, output, "http://journal.test"):
            key = await edge.key("posts:draft")
            async with edge.ask("GET", f"{SOURCES}/begun", key) as answer:
                version = answer.headers["ETag"]
            shared = await ask(edge, "share", "begun", version)
            async with edge.ask("GET", f"/shared/{shared.path}/") as answer:
                assert answer.status == 200
                policy = answer.headers["Content-Security-Policy"]
                assert 'action="/desk/access/keys/"' in await answer.text()
    assert "form-action 'none'" in policy
    assert "form-action 'self'" not in policy
