"""Signing in and out: by an API key, or by a link that is mailed or printed and works once.

These pages, the style sheet and the script need no session.
"""

from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Final

from edge_api.auth.actor import Actor
from edge_api.auth.desk_links import DeskLinks
from edge_api.db.problems import Problem
from edge_api.desk.screens import (
    LONG_FORM_BYTES,
    SIGN_IN_PATH,
    Request,
    find_session,
    make_operation,
    redirect,
    render,
    safe_target,
)
from edge_api.desk.sessions import BROWSER_COOKIE, OWNER, Sessions, read_cookie, set_cookie
from edge_api.mail.messages import SIGN_IN_LINK
from edge_api.mail.queue import Outbox
from edge_api.operation.input import form_pairs, key_owner
from edge_api.operation.model import AnyOperation, Document, OperationResult, Service
from edge_api.schema.paths import DESK

LINK_PATH: Final = "/desk/link/{token}/"


async def show_sign_in(service: Service, request: Request) -> OperationResult:
    """Show the form, or redirect if the browser is signed in already."""
    to = safe_target(dict(request.pairs).get("to", DESK))
    return redirect(to) if await find_session(service, request) else await _form(service, to)


async def _form(service: Service, to: str, status: int = 200, **values: object) -> OperationResult:
    return await render(service, "sign_in", "Sign in", status=status, to=to, **values)


async def sign_in(service: Service, request: Request) -> OperationResult:
    """Start a session for the holder of a key; offer to send what was typed before signing in."""
    pairs = form_pairs(request.body)
    kept = [pair for pair in pairs if pair[0] not in ("key", "to", "screen")]
    to = safe_target(dict(pairs).get("to", DESK))
    screen = safe_target(dict(pairs).get("screen", to))
    try:
        actor = await key_owner(service, request, dict(pairs).get("key", "").strip())
        if "admin:read" not in actor.scopes:
            message = "This key lacks the scope admin:read: use one that has it"
            raise Problem("invalid", message)  # noqa: TRY301  shown in the form as the others are
    except Problem as problem:
        if problem.code != "invalid":
            raise
        return await _form(service, to, 400, kept=kept, screen=screen, fault=f"{problem.message}.")
    cookie = await _start(service, request, actor)
    if not kept:
        return redirect(to, cookie)
    result = await render(service, "resume", "Signed in", to=to, kept=kept)
    result.headers = cookie
    return result


async def _start(service: Service, request: Request, actor: Actor) -> dict[str, str]:
    """Start a session in place of the browser's former one; return the header of its cookie."""
    await _end_session(service, request)
    secret = await service[Sessions].start(actor, request.headers.get("User-Agent", ""))
    return {"Set-Cookie": set_cookie(service.settings.site_url, secret)}


async def _end_session(service: Service, request: Request) -> None:
    if session := await find_session(service, request):
        with suppress(Problem):  # another request has ended it meanwhile
            await service[Sessions].revoke(session.id, session.actor)


async def mail_link(service: Service, request: Request) -> OperationResult:
    """Mail a link to the owner; the answer is the same whether or not one is sent."""
    links, settings = service[DeskLinks], service.settings
    cookies = request.headers.get("Cookie", "")
    if browser := links.check_browser_cookie(
        read_cookie(settings.site_url, cookies, BROWSER_COOKIE)
    ):
        await service.limiter.hit("desk_links", browser)
    target = safe_target(dict(form_pairs(request.body)).get("to", DESK))
    row = links.new_row(target, is_known=bool(browser))
    is_safe = settings.is_loopback or settings.site_url.startswith("https:")
    entries = service[Outbox].owner_entries(SIGN_IN_LINK, row) if is_safe else ()
    await service.store.run(*links.store_queries(row, entries))
    service[Outbox].wake()
    return await render(service, "link_sent", "Look into your mail", is_known=bool(browser))


async def show_link(service: Service, request: Request) -> OperationResult:
    """Show the button that signs in; change nothing, since programs fetch links to check them."""
    if not await service[DeskLinks].is_token_usable(request.path["token"]):
        return await _form(service, DESK, 404, fault=_USED)
    return await render(service, "link", "Sign in to the desk")


_USED: Final = "This link has been used, or has expired: ask for another one."


async def use_link(service: Service, request: Request) -> OperationResult:
    """Sign the owner in, once for each link."""
    if not (target := await service[DeskLinks].consume(request.path["token"])):
        await service.limiter.hit("failed_auth", request.address)
        return await _form(service, DESK, 404, fault=_USED)
    return redirect(target, await _start(service, request, OWNER))


async def sign_out(service: Service, request: Request) -> OperationResult:
    """End the session of this browser."""
    await _end_session(service, request)
    return redirect(
        SIGN_IN_PATH,
        {
            "Set-Cookie": set_cookie(service.settings.site_url, ""),
            # Without it, the browser's next user could see pages from its cache.
            "Clear-Site-Data": '"cache"',
        },
    )


# The style sheets of the frame and of the screens are sent as one.
_SHEET: Final = Document(
    b"".join(
        files(__package__).joinpath(f"templates/{each}.css").read_bytes()
        for each in ("desk", "inbox", "message", "settings", "posts", "stats")
    ),
    "text/css; charset=utf-8",
)
_SCRIPTS: Final = {
    name: Document(
        files(__package__).joinpath(f"templates/{name}").read_bytes(),
        "text/javascript; charset=utf-8",
    )
    for name in ("desk.js", "write.js")
}


async def show_file(file: Document, _service: Service, _request: Request) -> OperationResult:
    """Return the style sheet or a script of the desk, whose pages work without scripts."""
    return OperationResult(file)


OPERATIONS: tuple[AnyOperation, ...] = (
    make_operation("/desk/desk.css", "GET", partial(show_file, _SHEET)),
    *(
        make_operation(f"/desk/{name}", "GET", partial(show_file, script))
        for name, script in _SCRIPTS.items()
    ),
    make_operation(SIGN_IN_PATH, "GET", show_sign_in),
    # The form keeps what was typed before the session ended: also the text of a post.
    make_operation(SIGN_IN_PATH, "POST", sign_in, max_bytes=LONG_FORM_BYTES),
    make_operation("/desk/mail-link/", "POST", mail_link),
    make_operation(LINK_PATH, "GET", show_link),
    make_operation(LINK_PATH, "POST", use_link),
    make_operation("/desk/sign-out/", "POST", sign_out),
)
