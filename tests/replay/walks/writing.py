"""Walks of who writes: sources, drafts, pictures and publication, by REST and by MCP."""

import base64
import json
from typing import Any, Final

from tests.replay.walk import JSON, Walk, walk
from tests.replay.walks.mcp import EARLIER, MODERN, say

PATH: Final = "/api/public/v1/sources"
NONE: Final = "0" * 40
"""A version that nothing has."""
PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)


def text(body: str = "The store has stood.", slug: str = "two-winters", **more: str) -> str:
    """Return a draft whose head leaves nothing to fill in, so that its version is always the same.

    `more` are other keys of the head.
    """
    keys = {"title": "Two winters", "slug": slug, "date": "2025-11-20T09:30:00Z", **more}
    head = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\n{head}status: draft\n---\n\n{body}\n"


CHECKED: Final[tuple[Any, ...]] = (
    {"markdown": text()},
    {"markdown": "No heading.\n"},
    {"markdown": "---\ntitle: [x\n---\n"},
    {"markdown": "---\ntitle: X\ndate: yesterday\n---\n\nA text.\n"},
    {"markdown": "# X\n\n![](/images/none.jpg) [a](/journal/none/)\n"},
    {"markdown": text(slug="first-edge"), "slug": "first-edge"},
    {"markdown": text(slug="first-edge")},
    {"markdown": ""},
    {"markdown": "a\0b"},
    {"markdown": 5},
    {"markdown": "# A", "slug": "../x"},
    {"markdown": "# A", "status": "published"},
    {},
)
SAVED: Final[tuple[Any, ...]] = (
    {"markdown": text(slug="other"), "slug": "two-winters"},
    {"markdown": text(slug="first-edge"), "slug": "first-edge"},
    {"markdown": text(template="page")},
    {"markdown": text(save_as="index.html")},
    {"markdown": "no title"},
    {"markdown": "a\0b", "slug": "x"},
    {"markdown": "# A", "slug": "A b"},
    {"markdown": "# A", "slug": "x" * 201},
    {"markdown": "# A", "author": "owner"},
)
PICTURES: Final[tuple[Any, ...]] = (
    {"name": "My store.PNG", "data": PNG},
    {"name": "My store.PNG", "data": PNG},
    {"name": "../../x.png", "data": PNG},
    {"name": "x.png", "data": "no base64"},
    {"name": "x.svg", "data": base64.b64encode(b"<svg/>").decode()},
    {"name": "", "data": PNG},
    {"name": "x.png"},
)


def store(w: Walk, markdown: str, key: str = "draft", **more: Any) -> str:
    """Save a draft, and return its version as a header has it."""
    return w.post(PATH, {"markdown": markdown, **more}, key=key).header("ETag")


def act(w: Walk, what: str, version: str, body: Any = None, key: str = "editor") -> str:
    """Publish or withdraw; return the version that the answer has."""
    headers = {"If-Match": version} if version else {}
    sent: dict[str, Any] = {} if body is None else {"json_body": body}
    return w.ask("POST", f"{PATH}/{what}", key=key, headers=headers, **sent).header("ETag")


@walk("writing-documents", kind="writing", fresh=False)
def documents(w: Walk) -> None:
    """Read what the service says of itself where writing is on."""
    for path in ("/api/public/v1/", "/api/public/v1/openapi.json", "/docs/posts/index.md"):
        w.get(path)
    for bearer in ("token", "draft token", "editor token"):
        say(w, MODERN, "tools/list", {}, bearer=bearer)


@walk("writing-drafts", kind="writing")
def drafts(w: Walk) -> None:
    """Check texts, save drafts, add pictures, and read them all."""
    for given in CHECKED:
        w.post(f"{PATH}/check", given, key="draft")
    w.get(PATH, key="draft")
    for slug in ("first-edge", "a-draft", "not-yet", "none", "%2E%2E%2Fx", "A%20b", "x" * 201):
        w.get(f"{PATH}/{slug}", key="draft")
    for given in SAVED:
        w.post(PATH, given, key="draft")
    version = store(w, text())
    store(w, text())
    store(w, text("Another."))
    for wrong in (f'"{NONE}"', "*", f'W/"{NONE}"', f'"{NONE}", {version}', "x"):
        changed = {"markdown": text("Another."), "slug": "two-winters"}
        w.post(PATH, changed, key="draft", headers={"If-Match": wrong})
    w.post(PATH, {"markdown": text("Another.")}, key="draft", headers={"If-Match": version})
    for given in PICTURES:
        w.post(f"{PATH}/pictures", given, key="draft")
    w.get(f"{PATH}/two-winters", key="editor")
    w.get(PATH, key="editor")
    w.audit()


@walk("writing-publication", kind="writing")
def publication(w: Walk) -> None:
    """Publish now and later, withdraw, and meet all that keeps from it."""
    act(w, "none/publish", f'"{NONE}"', {})
    act(w, "none/withdraw", f'"{NONE}"')
    version = store(w, text())
    act(w, "two-winters/publish", version, {}, key="draft")
    act(w, "two-winters/withdraw", version)
    act(w, "two-winters/publish", "", {})
    act(w, "two-winters/publish", f'"{NONE}"', {})
    for body in ({"at": "2020-01-01T00:00:00Z"}, {"at": "tomorrow"}, {"at": 5}, {"when": "now"}):
        act(w, "two-winters/publish", version, body)
    unfinished = w.folder / ".git/MERGE_HEAD"
    unfinished.write_text(NONE)
    act(w, "two-winters/publish", version, {})
    unfinished.unlink()
    version = act(w, "two-winters/publish", version, {"at": "2099-03-01T07:00:00Z"})
    w.get(PATH, key="draft")
    w.post(PATH, {"markdown": text()}, key="draft", headers={"If-Match": version})
    act(w, "two-winters/withdraw", "")
    act(w, "two-winters/withdraw", version)
    # Its date is past and stays, so that the version is always the same.
    version = act(w, "dated/publish", store(w, text(slug="dated")), {})
    changed = {"markdown": text("Changed.", "dated")}
    w.post(PATH, changed, key="editor", headers={"If-Match": version})
    w.get(f"{PATH}/dated", key="draft")
    foreign = store(w, text("<form action=x></form>", "a-form"))
    act(w, "a-form/publish", foreign, {})
    alias = store(w, text(slug="oldest-edge"))
    act(w, "oldest-edge/publish", alias, {})
    (w.folder / "content/posts/first-edge.md").write_text(text(slug="first-edge"))
    version = w.get(f"{PATH}/first-edge", key="editor").header("ETag")
    act(w, "first-edge/publish", version, {})
    w.audit()


@walk("writing-by-agents", kind="writing")
def by_agents(w: Walk) -> None:
    """Call each tool with tokens that may draft, publish, or neither."""
    version = json.loads(store(w, text()))
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("check_post", {"markdown": "# A\n\n![](/images/none.png)\n"}),
        ("list_sources", {}),
        ("get_source", {"slug": "two-winters"}),
        ("get_source", {"slug": "none"}),
        ("save_draft", {"markdown": text("Another.")}),
        ("save_draft", {"markdown": text("Another."), "version": NONE}),
        ("save_draft", {"markdown": text("Another."), "version": "x"}),
        ("save_draft", {"markdown": text("Another."), "version": version}),
        ("save_draft", {"text": "x"}),
        ("add_picture", {"name": "store.png", "data": PNG}),
        ("add_picture", {"name": "store.png", "data": "x"}),
        ("publish_post", {"slug": "two-winters"}),
        ("publish_post", {"slug": "two-winters", "version": version}),
        ("withdraw_post", {"slug": "first-edge", "version": NONE}),
    )
    for bearer in ("token", "draft token", "editor token"):
        for tool, arguments in calls:
            say(w, MODERN, "tools/call", {"name": tool, "arguments": arguments}, bearer=bearer)
    for tool, arguments in calls[:3]:
        say(
            w,
            EARLIER[-1],
            "tools/call",
            {"name": tool, "arguments": arguments},
            bearer="draft token",
        )
    w.audit()


OPERATIONS: Final = (
    ("GET", PATH),
    ("GET", f"{PATH}/two-winters"),
    ("POST", PATH),
    ("POST", f"{PATH}/check"),
    ("POST", f"{PATH}/pictures"),
    ("POST", f"{PATH}/two-winters/publish"),
    ("POST", f"{PATH}/two-winters/withdraw"),
)


@walk("writing-sweep", kind="writing", fresh=False)
@walk("writing-sweep-off", fresh=False)
def sweep(w: Walk) -> None:
    """Show credentials to each operation, and send bodies that are none, on and off."""
    for method, path in OPERATIONS:
        for key in ("", "posts", "draft", "editor", "revoked", "draft token"):
            w.ask(method, path, key=key, json_body={})
        for other in ("PUT", "OPTIONS"):
            w.ask(other, path, headers={"Origin": "https://other.example"})
        if method == "POST":
            for body in (b"", b"{", b"[]", b"\xff"):
                w.ask(method, path, key="editor", body=body, headers={"Content-Type": JSON})
            w.ask(method, path, key="editor", body=b"{}", headers={"Content-Type": "text/plain"})
            long = {"Content-Type": JSON, "Content-Length": "99999999"}
            w.ask(method, path, key="editor", headers=long)
