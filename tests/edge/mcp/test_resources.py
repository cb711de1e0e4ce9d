"""Posts as resources, the prompts that have posts in them, and completion."""

from pathlib import Path
from typing import Any

import pytest

from tests.edge.mcp.agents import LEGACY, MODERN, Agent
from tests.edge.small_builds import make_post, point_at, write_build

pytestmark = [pytest.mark.one_engine, pytest.mark.size("test")]

FIRST = "http://journal.test/journal/first-edge/"
POST_TEMPLATE = "http://journal.test/journal/{slug}/"
TAG_TEMPLATE = "http://journal.test/tags/{tag}/"
NOT_FOUND = {LEGACY: (200, -32002), MODERN: (400, -32602)}
BAD = {LEGACY: (200, -32602), MODERN: (400, -32602)}


async def test_each_post_is_a_resource(agent: Agent) -> None:
    """The list has every post, newest first, at the address of its page."""
    resources = (await agent.ask("resources/list")).result["resources"]
    key = await agent.edge.key()
    async with agent.edge.ask("GET", "/api/public/v1/posts", key) as answer:
        posts = (await answer.json())["posts"]

    assert [item["uri"] for item in resources] == [post["url"] for post in posts]
    for resource, post in zip(resources, posts, strict=True):
        assert resource["name"] == post["slug"]
        assert resource["title"] == post["title"]
        assert resource["description"] == post["description"]
        assert resource["mimeType"] == "text/markdown"


async def test_a_resource_is_the_markdown_of_its_page(agent: Agent) -> None:
    """It equals the page's Markdown twin, byte for byte; tags likewise."""
    for uri, path in (
        (FIRST, "/journal/first-edge/index.md"),
        ("http://journal.test/tags/bindings/", "/tags/bindings/index.md"),
    ):
        (contents,) = (await agent.ask("resources/read", uri=uri)).result["contents"]
        async with agent.edge.ask("GET", path) as answer:
            assert contents == {
                "uri": uri,
                "mimeType": "text/markdown",
                "text": await answer.text(),
            }


@pytest.mark.parametrize(
    "uri",
    [
        "http://journal.test/journal/none-such/",
        "http://journal.test/journal/the-draft/",
        "http://journal.test/journal/first-edge",
        "http://journal.test/journal/first-edge/?x=1",
        "http://journal.test/journal/first-edge/#top",
        "http://journal.test/journal/",
        "http://journal.test/journal/../about/",
        "http://journal.test/journal/%2e%2e/",
        "http://journal.test/tags/none/",
        "http://journal.test/tags/../../posts.json/",
        "http://journal.test/about/",
        "http://elsewhere.test/journal/first-edge/",
        "http://journal.test:80/journal/first-edge/",
        "file:///etc/passwd",
        "http://journal.test/[",
        "",
    ],
)
async def test_other_addresses_are_no_resources(agent: Agent, uri: str) -> None:
    """Drafts, strangers and paths that climb are not there, in the words of the revision."""
    said = await agent.ask("resources/read", uri=uri)

    assert (said.status, said.code) == NOT_FOUND[agent.version]


async def test_templates_lead_to_posts_and_tags(agent: Agent) -> None:
    """Both templates are listed, each with a name and a description."""
    result = (await agent.ask("resources/templates/list")).result
    templates = {item["uriTemplate"]: item for item in result["resourceTemplates"]}

    assert list(templates) == [POST_TEMPLATE, TAG_TEMPLATE]
    assert all(item["description"] and item["name"] for item in templates.values())


async def test_many_posts_come_page_by_page(make_edge: Any, tmp_path: Path) -> None:
    """A list of 120 posts has three pages, all of it once; a post without a twin is read too."""
    posts = [make_post(f"post-{number:03}", day=-number) for number in range(120)]
    point_at(tmp_path / "many", write_build(tmp_path / "many", "build-many", posts))
    async with make_edge(BUILD_DIR=str(tmp_path / "many")) as edge:
        agent = Agent(edge, await edge.token(), MODERN)
        sizes, seen = [], []
        more: dict[str, str] = {}
        for _ in range(4):
            result = (await agent.ask("resources/list", **more)).result
            sizes.append(len(result["resources"]))
            seen += [item["name"] for item in result["resources"]]
            if "nextCursor" not in result:
                break
            more = {"cursor": result["nextCursor"]}
        read = await agent.ask("resources/read", uri="http://journal.test/journal/post-007/")
        slugs = await complete(agent, "post-", POST_TEMPLATE)

    assert sizes == [50, 50, 20]
    assert seen == [post["slug"] for post in posts]
    assert read.result["contents"][0]["text"] == "# Post-007\n\nWords of post-007.\n"
    assert (len(slugs["values"]), slugs["total"], slugs["hasMore"]) == (100, 120, True)


@pytest.mark.parametrize(
    "method", ["resources/list", "resources/templates/list", "prompts/list", "tools/list"]
)
async def test_a_cursor_that_nobody_gave_is_refused(agent: Agent, method: str) -> None:
    """A bad cursor is -32602, wherever one is accepted."""
    said = await agent.ask(method, cursor="here")

    assert (said.status, said.code) == BAD[agent.version]
    assert said.body["error"]["message"].startswith("cursor: ")


async def test_prompts_are_described(agent: Agent) -> None:
    """Both prompts and each of their arguments say what they are for."""
    prompts = {item["name"]: item for item in (await agent.ask("prompts/list")).result["prompts"]}

    assert list(prompts) == ["summarize_post", "digest"]
    for prompt in prompts.values():
        assert prompt["description"]
        assert all(argument["description"] for argument in prompt["arguments"])
    required = {item["name"]: item["required"] for item in prompts["summarize_post"]["arguments"]}
    assert required == {"slug": True}


async def test_a_summary_has_the_post_in_it(agent: Agent) -> None:
    """The prompt carries the post as an embedded resource."""
    result = (
        await agent.ask("prompts/get", name="summarize_post", arguments={"slug": "first-edge"})
    ).result
    ask, post = result["messages"]

    assert "The first edge" in ask["content"]["text"]
    assert post["content"]["type"] == "resource"
    assert post["content"]["resource"]["uri"] == FIRST
    assert "fore-edge" in post["content"]["resource"]["text"]


async def test_a_digest_has_the_posts_that_were_asked_for(agent: Agent) -> None:
    """Tag and date narrow it; where nothing is left, it says so."""

    async def digest(**arguments: str) -> str:
        result = (await agent.ask("prompts/get", name="digest", arguments=arguments)).result
        return str(result["messages"][0]["content"]["text"])

    everything = await digest()
    assert everything.count("<http://journal.test/journal/") == 3
    assert FIRST not in await digest(since="2026-02-01")
    assert FIRST in await digest(tag="Bindings")
    assert "nothing on none" in await digest(tag="none")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nothing", {}),
        ("summarize_post", {}),
        ("summarize_post", {"slug": "none-such"}),
        ("summarize_post", {"slug": "first-edge", "tone": "merry"}),
        ("digest", {"since": "yesterday"}),
        ("digest", {"tag": ""}),
        ("digest", {"tag": 1}),
    ],
)
async def test_faulty_prompts_are_refused(
    agent: Agent, name: str, arguments: dict[str, Any]
) -> None:
    """Unknown prompts and bad arguments are -32602."""
    said = await agent.ask("prompts/get", name=name, arguments=arguments)

    assert (said.status, said.code) == BAD[agent.version]


async def complete(agent: Agent, typed: str, ref: str, argument: str = "slug") -> dict[str, Any]:
    """Return the completion of what was typed for a prompt or a template."""
    kind = (
        {"type": "ref/resource", "uri": ref} if "{" in ref else {"type": "ref/prompt", "name": ref}
    )
    said = await agent.ask(
        "completion/complete", ref=kind, argument={"name": argument, "value": typed}
    )
    completion: dict[str, Any] = said.result["completion"]
    return completion


@pytest.mark.parametrize(
    ("typed", "ref", "argument", "values"),
    [
        ("", "summarize_post", "slug", ["marbled-paper", "sewing-and-folding", "first-edge"]),
        ("FI", "summarize_post", "slug", ["first-edge"]),
        ("s", POST_TEMPLATE, "slug", ["sewing-and-folding", "first-edge"]),
        ("PAPER", POST_TEMPLATE, "slug", ["marbled-paper"]),
        ("", "digest", "tag", ["bindings", "paper"]),
        ("p", TAG_TEMPLATE, "tag", ["paper"]),
        ("zz", TAG_TEMPLATE, "tag", []),
        ("20", "digest", "since", []),
    ],
)
async def test_slugs_and_tags_are_completed(
    agent: Agent, typed: str, ref: str, argument: str, values: list[str]
) -> None:
    """Names that begin with the typed text come first, then those that contain it."""
    completion = await complete(agent, typed, ref, argument)

    assert completion["values"] == values
    assert (completion["total"], completion["hasMore"]) == (len(values), False)


@pytest.mark.parametrize(
    ("ref", "argument"), [("nothing", "slug"), ("digest", "slug"), ("http://a/{slug}", "slug")]
)
async def test_nothing_else_is_completed(agent: Agent, ref: str, argument: str) -> None:
    """An unknown reference or argument is -32602."""
    kind = (
        {"type": "ref/resource", "uri": ref} if "{" in ref else {"type": "ref/prompt", "name": ref}
    )
    said = await agent.ask(
        "completion/complete", ref=kind, argument={"name": argument, "value": ""}
    )

    assert (said.status, said.code) == BAD[agent.version]
