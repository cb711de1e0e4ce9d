"""The screens Posts (the list), Write (a post in a form), Publish and the history of a post."""

import asyncio
import base64
import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import orjson

from edge_api.db.problems import Problem
from edge_api.db.types import format_instant
from edge_api.desk.front_matter import FIELDS, Parts, split
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.desk.stats import count_reads
from edge_api.journal.builds import BuildManager
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.subscribers import Subscribers
from edge_api.operation.input import FormErrors, FormFile
from edge_api.operation.model import HtmlResult
from edge_api.schema.paths import SHARED
from edge_api.schema.shares import PREVIEWS, find_shared
from edge_api.schema.site_policy import media_type
from edge_api.schema.writing import (
    MAX_PICTURE_BYTES,
    Operation,
    Source,
    WriteAnswer,
    WriteRequest,
    blob_id,
)
from edge_api.writing.service import Writing

PAGE_SIZE: Final = 50
WORDS_A_MINUTE: Final = 220
_UNNAMED: Final = re.compile(r"draft-\d{8}-\d{6}")
"""The slug of a draft that was saved before it had a title."""
_CARD_LETTERS: Final = 2000
"""Letters of a text that are read for its card: patterns take a time that grows with its square."""
_TAKEN: Final = "Another post has this address: choose another one."
_STALE: Final = (
    "This was changed elsewhere since you opened it. Your text is kept here and the other one "
    "stands below it: take from it what you need; if you save again, yours replaces it"
)


async def ask(visit: Visit, operation: Operation, **values: Any) -> WriteAnswer:
    """Send a request to the watcher in the name of who signed in. Raises Problem."""
    actor = visit.actor
    request = WriteRequest(
        operation=operation,
        author=actor.name if actor.credential_id else "",
        may_publish="posts:publish" in actor.scopes,
        asked_at=visit.service.clock().replace(microsecond=0),
        **{"slug": visit.path.get("slug", ""), **values},
    )
    return await visit.service[Writing].ask(request, actor)


async def count_unread(visit: Visit) -> int:
    """Return how many drafts of others wait; 0 if the watcher does not answer soon."""
    if WRITE.scope in visit.actor.scopes:
        with suppress(Problem, TimeoutError):
            async with asyncio.timeout(2):
                return len([each for each in (await ask(visit, "list")).sources if each.author])
    return 0


def address_of(slug: str) -> str:
    """Return the address of the screen Write for a post."""
    # The address of a new post hides that of the slug `new`; case makes no difference to the rest.
    return f"{POSTS.path}{quote('NEW' if slug == 'new' else slug, safe='')}/"


async def list_posts(visit: Visit) -> Values:
    """Return drafts and scheduled posts, then a page of those that readers see."""
    sources = (await ask(visit, "list")).sources
    build, search = visit.service[BuildManager].current, visit.query.get("q", "").strip()
    waiting = {each.slug for each in sources}
    public = [orjson.loads(each.summary) for each in build.posts.entries] if build else []
    rows = [each.model_dump(mode="json") for each in sources]
    rows += [
        {**each, "state": "published", "author": "", "date": each["published_at"]}
        for each in public
        if each["slug"] not in waiting
    ]
    rows = [
        each for each in rows if search.casefold() in f"{each['title']} {each['slug']}".casefold()
    ]
    typed = visit.query.get("page", "")
    page = max(1, int(typed[:6])) if typed.isascii() and typed.isdecimal() else 1
    shown = rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    slugs = {each["slug"] for each in shown}
    return {
        "rows": shown,
        "reads": await count_reads(visit, [each for each in public if each["slug"] in slugs]),
        "q": search,
        "before": page - 1,
        "after": page + 1 if len(rows) > page * PAGE_SIZE else 0,
        "address_of": address_of,
        "binned": visit.query.get("binned", ""),
        "own": visit.actor.name if visit.actor.credential_id else "",
        "may_publish": "posts:publish" in visit.actor.scopes,
    }


async def show_write(visit: Visit) -> Values:
    """Return a post in the parts of the form; a former version of it if the address names one.

    After an error they are those that were typed, and the post that is stored is shown beside them
    if it is another one.
    """
    typed, answer = visit.typed, WriteAnswer()
    if visit.service.settings.writing != "on":
        await ask(visit, "list")  # it says so before somebody types
    if "slug" in visit.path:
        try:
            answer = await ask(visit, "get")
        except Problem:
            if "text" not in typed and "version" not in visit.query:  # that of a binned draft
                raise
    source = answer.source
    markdown = shown = source.markdown if source else ""
    if former := visit.query.get("version"):
        found = (await ask(visit, "former", base=former)).source
        shown = found.markdown if found else ""
    parts = split(shown.replace("\r\n", "\n"))
    values = _parts_of(typed) if "text" in typed else parts
    is_overtaken = bool(source and "text" in typed and typed.get("base") != source.version)
    words = len(values.text.split())
    return {
        "title": (source.title if source else "") or "A new post",
        "source": source,
        "state": describe_state(source) if source else "Not saved yet",
        "parts_of": values,
        "fields": parts.fields,
        "base": source.version if source else typed.get("base", ""),
        "eol": "crlf" if "\r\n" in markdown else "",
        "theirs": parts.text if is_overtaken else None,
        "is_former": bool(former),
        "is_withdrawn": "withdrawn" in visit.query,
        "findings": _place_findings(answer, parts) if "text" not in typed and not former else [],
        "words": words,
        "minutes": max(1, round(words / WORDS_A_MINUTE)),
        "address": address_of(source.slug) if source else NEW.path,
        "may_publish": "posts:publish" in visit.actor.scopes,
        "limit": MAX_PICTURE_BYTES,
    }


def describe_state(source: Source) -> str:
    """Return the state of a post in words."""
    word = source.state.capitalize()
    return f"{word}, with changes that are not published" if source.is_changed else word


def _parts_of(typed: Any) -> Parts:
    return Parts(**{name: typed.get(name, "") for name in ("before", "head", "after", "text")})


def _place_findings(answer: WriteAnswer, parts: Parts) -> list[dict[str, Any]]:
    """Return findings with their lines within the text, from 1, and what these lines say."""
    lines = answer.source.markdown.splitlines() if answer.source else []
    return [
        {
            "line": each.line - parts.first_line,
            "is_error": each.severity == "error",
            "message": each.message,
            "quoted": "".join(lines[each.line - 1 : each.line]).strip()[:80],
        }
        for each in answer.findings
    ]


async def write(visit: Visit) -> str:
    """Store a picture if there is one, then what was typed; return where the button leads."""
    slug = visit.path.get("slug", "")
    for file in (visit.form.get(name) for name in ("picture", "photo")):
        if isinstance(file, FormFile) and file:
            visit.form["text"] = insert_picture(visit.typed, await _store_picture(visit, file))
    typed = visit.typed
    chosen = {name: typed[name].strip() for name in FIELDS if name in typed}
    changes = [(name, new) for name, new in chosen.items() if new != typed.get(f"was.{name}", "")]
    new_slug, base = dict(changes).get("slug", ""), typed.get("base", "")
    is_unnamed = bool(_UNNAMED.fullmatch(slug) and chosen.get("title") and not new_slug)
    if is_unnamed:
        changes.append(("slug", ""))
    markdown = _parts_of(typed).join(changes)
    if typed.get("eol"):
        markdown = markdown.replace("\n", "\r\n")
    if not slug and not new_slug and not chosen.get("title") and not markdown.startswith("# "):
        new_slug = f"draft-{visit.service.clock():%Y%m%d-%H%M%S}"
    read = base
    if slug and (is_unnamed or new_slug):
        slug, read = await _move(visit, new_slug, markdown, base)
    elif not slug or blob_id(markdown.encode(errors="replace")) != base:
        slug, read = await _save(visit, slug or new_slug, markdown, base or None)
    button = typed.get("do", "")
    # An agent may have changed its draft since it was opened: what was read is what is shown.
    if button == "preview":
        shown = await ask(visit, "preview", slug=slug, base=read)
        return f"{address_of(slug)}preview/{shown.path}/"
    if button == "share":
        if "posts:publish" not in visit.actor.scopes:
            raise Problem("forbidden", "Sharing shows it to others: that takes posts:publish")
        return f"{SHARED}{(await ask(visit, 'share', slug=slug, base=read)).path}/"
    return f"{address_of(slug)}publish/?read={read}" if button == "publish" else address_of(slug)


async def _save(
    visit: Visit, slug: str, markdown: str, base: str | None, **more: str
) -> tuple[str, str]:
    """Store a draft and return its slug and version.

    Raises Problem, and FormErrors for a taken slug.
    """
    try:
        answer = await ask(visit, "save", slug=slug, markdown=markdown, base=base, **more)
    except Problem as problem:
        if problem.code == "stale":
            raise Problem("stale", _STALE) from None
        if problem.code == "unnamed":
            raise FormErrors({"slug": _TAKEN}) from None
        raise
    assert answer.source is not None  # noqa: S101  every save returns it
    return answer.source.slug, answer.source.version


async def _move(visit: Visit, slug: str, markdown: str, base: str) -> tuple[str, str]:
    """Store a draft under another slug, then bin the former one; return slug and version."""
    source = (await ask(visit, "get")).source
    assert source is not None  # noqa: S101  `get` returns it
    if source.version != base:
        raise Problem("stale", _STALE)
    if source.state != "draft":
        raise FormErrors({"slug": "Readers know this address: take the post back to change it."})
    moved = await _save(visit, slug, markdown, None, moved_from=source.slug)
    await ask(visit, "bin", base=base)
    return moved


async def _store_picture(visit: Visit, file: FormFile) -> str:
    """Store a picture, and return its path for the text. Raises FormErrors."""
    if len(file.data) > MAX_PICTURE_BYTES:
        raise FormErrors(
            {
                "picture": f"{file[:80]} has more than {MAX_PICTURE_BYTES // 1_000_000} MB, which "
                "is the limit: save it smaller. Your text is kept."
            }
        )
    try:
        data = base64.b64encode(file.data).decode()
        return (await ask(visit, "picture", name=file[-200:], data=data)).path
    except Problem as problem:
        if problem.code != "invalid":
            raise
        raise FormErrors({"picture": f"{problem.message.removeprefix('data: ')}."}) from None


def insert_picture(typed: Any, path: str) -> str:
    """Return the text with a picture where the cursor was, or at its end."""
    text, at = typed.get("text", ""), typed.get("at", "")
    place = int(at) if at.isascii() and at.isdecimal() and len(at) < 8 else len(text)  # noqa: PLR2004  1 MiB
    before, after = text[:place].rstrip(), text[place:].lstrip("\n")
    return "\n\n".join(filter(None, (before, f"![]({path})", after)))


async def show_publish(visit: Visit) -> Values:
    """Return what readers will see, what is wrong, and what the button does."""
    answer = await ask(visit, "get")
    source = answer.source
    assert source is not None  # noqa: S101  `get` returns it
    if visit.query.get("read", source.version) != source.version:
        raise Problem("stale", "This was changed since you read it: go back, and read it again")
    parts = split(source.markdown.replace("\r\n", "\n"))
    findings = _place_findings(answer, parts)
    begin = parts.text[:_CARD_LETTERS]
    shown = re.sub(r"(?m)!\[[^\]]*\]\([^)]*\)|^#.*|[>*_`]|\[|\]\([^)]*\)", "", begin)
    first = next((each for each in re.split(r"\n\s*\n", shown) if each.strip()), "")
    build = visit.service[BuildManager].current
    return {
        "title": source.title or source.slug,
        "source": source,
        "state": describe_state(source),
        "findings": findings,
        "has_errors": any(each["is_error"] for each in findings),
        "card": parts.fields["description"] or " ".join(first.split()[:30]),
        "is_awaited": source.state == "published"
        and not (build and any(each.cursor.slug == source.slug for each in build.posts.entries)),
        "zone": f"{visit.now:%Z}",
        "soon": f"{visit.now:%Y-%m-%dT%H:%M}",
        "address": address_of(source.slug),
        "may_publish": "posts:publish" in visit.actor.scopes,
        **await _read_mailing(visit, source, parts),
    }


async def _read_mailing(visit: Visit, source: Source, parts: Parts) -> Values:
    """Return the mailing of a post, or what is foreseen of it, and to how many it goes."""
    service, delay = visit.service, timedelta(minutes=visit.service.settings.newsletter_delay)
    mailings, date = service[Mailings], source.date if parts.fields["date"] else None
    # What stands in no list is mailed only if its head asks for that.
    wish, is_hidden = parts.fields["newsletter"].lower(), parts.fields["status"] == "hidden"
    return {
        "mailing": next(iter(await mailings.of_post(source.slug)), None),
        "foreseen": await mailings.foresee(source.slug, visit.actor, date),
        "is_mailed": wish in ("yes", "true", "on") or not (wish or is_hidden),
        "subscribers": (await service[Subscribers].count())["active"],
        "mailed_at": format_instant(service.clock() + delay),
        "delay": service.settings.newsletter_delay,
    }


async def _save_mailing(visit: Visit) -> str | None:
    """Save in the head whether a post is mailed, if the tick was changed; return the version."""
    base, is_mailed = visit.typed.get("base"), visit.typed.get("mail", "")
    if visit.typed.get("was.mail", is_mailed) == is_mailed:
        return base
    source = (await ask(visit, "get")).source
    assert source is not None  # noqa: S101  `get` returns it
    parts = split(source.markdown.replace("\r\n", "\n"))
    markdown = parts.join([("newsletter", "" if is_mailed else "no")])
    end = "\r\n" if "\r\n" in source.markdown else "\n"
    return (await _save(visit, source.slug, markdown.replace("\n", end), base))[1]


async def publish(visit: Visit) -> str:
    """Publish the version that was shown, now or at a time in the journal's zone."""
    at: datetime | None = None
    if visit.typed.get("when") == "at":
        try:
            at = datetime.fromisoformat(visit.typed.get("at", "")).replace(tzinfo=visit.now.tzinfo)
        except ValueError:
            raise FormErrors({"at": "Choose the day and the time."}) from None
    elif visit.typed.get("at"):
        raise FormErrors({"at": "Choose “at” to publish then, or empty it to publish now."})
    await ask(visit, "publish", base=await _save_mailing(visit), at=at)
    return f"{address_of(visit.path['slug'])}publish/"


async def withdraw(visit: Visit) -> str:
    """Make a post a draft again."""
    await ask(visit, "withdraw", base=visit.typed.get("base"))
    return f"{address_of(visit.path['slug'])}?withdrawn=yes"


async def bin_draft(visit: Visit) -> str:
    """Remove a draft, which is kept for 30 days."""
    await ask(visit, "bin", base=visit.typed.get("base"))
    return f"{POSTS.path}?binned={quote(visit.path['slug'], safe='')}"


async def show_history(visit: Visit) -> Values:
    """Return the versions of a post, newest first."""
    versions = (await ask(visit, "history")).versions
    return {
        "versions": [each.model_dump(mode="json") for each in versions],
        "address": address_of(visit.path["slug"]),
    }


async def show_preview(visit: Visit) -> HtmlResult:
    """Return a file of a preview."""
    name = visit.path.get("name", "index.html")
    asked = visit.service.settings.build_dir, visit.path["token"], name, visit.service.clock()
    try:
        raw = await asyncio.to_thread(lambda: find_shared(*asked, PREVIEWS).read_bytes())
    except (OSError, ValueError):  # the latter for NUL in a name
        raise Problem("not_found", "This preview has ended: press Preview again") from None
    return HtmlResult(raw, media_type=media_type(name), is_private=True, is_preview=True)


_WRITER: Final = Screen("", "Write", "write", show_write, section="Posts", scope="posts:draft")
POSTS: Final = Screen(
    "/desk/posts/",
    "Posts",
    "posts",
    list_posts,
    nav="Posts",
    scope="posts:draft",
    switch="writing",
)
NEW: Final = replace(_WRITER, path="/desk/posts/new/")
WRITE: Final = replace(_WRITER, path="/desk/posts/{slug}/")
PUBLISH: Final = replace(
    _WRITER, path=f"{WRITE.path}publish/", template="publish", read=show_publish
)
HISTORY: Final = replace(
    _WRITER, path=f"{WRITE.path}history/", title="History", template="history", read=show_history
)
PREVIEW: Final = replace(_WRITER, path=f"{WRITE.path}preview/{{token}}/", read=show_preview)
SCREENS: Final = (
    POSTS,
    NEW,
    WRITE,
    PUBLISH,
    HISTORY,
    PREVIEW,
    replace(PREVIEW, path=f"{PREVIEW.path}{{name}}"),
)
ACTIONS: Final = (
    Action(NEW.path, NEW, write, "posts:draft", keeps_form=True),
    Action(WRITE.path, WRITE, write, "posts:draft", keeps_form=True),
    Action(PUBLISH.path, PUBLISH, publish, "posts:publish", keeps_form=True),
    Action(f"{WRITE.path}withdraw/", PUBLISH, withdraw, "posts:publish", keeps_form=True),
    Action(f"{WRITE.path}bin/", POSTS, bin_draft, "posts:draft", keeps_form=True),
)
