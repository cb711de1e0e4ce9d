"""The page that ends a subscription, or all mail to an address, and takes either back.

A GET changes nothing, since programs fetch links to check them; a POST needs nothing but the link,
so that a mail program can send it (RFC 8058). The buttons name their change in the query, since a
body is ignored.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from edge_api.db.problems import Problem
from edge_api.db.query import read_first
from edge_api.db.table import Row
from edge_api.mail.suppressions import UnsubscribeLinks, is_suppressed, mask, read_suppression
from edge_api.newsletter.subscribers import Subscribers
from edge_api.operation.model import (
    NOINDEX,
    AnyOperation,
    HtmlResult,
    Operation,
    OperationRequest,
    OperationResult,
    Parameter,
    Service,
    page,
)
from edge_api.schema.page_templates import PageName
from edge_api.schema.paths import UNSUBSCRIBE
from edge_api.schema.sentences import sentence

_CHANGES: Final[Mapping[str, Callable[[Subscribers, Row], Awaitable[None]]]] = {
    "resume": Subscribers.resume,
    "no-mail": Subscribers.refuse_mail,
    "mail": Subscribers.allow_mail,
}
"""The changes that a link makes besides ending its subscription, by `then` of the query."""


async def show_unsubscribe(
    service: Service, request: OperationRequest[None, None]
) -> OperationResult:
    """Show a question, or a notice that this was done or cannot be."""
    token = read_token(request)
    subscriber = await service[Subscribers].find(token)
    if subscriber is not None:
        return await render_state(service, subscriber, sentence("Unsubscribe"))
    address = await service[UnsubscribeLinks].subscriber(token)
    if address is None:
        return await _render_unknown_link(service, token)
    if await is_suppressed(service.store, address):
        return await _render_done(service, address, sentence("Already unsubscribed"))
    return await render_page(
        service,
        "unsubscribe",
        sentence("Unsubscribe"),
        action=f"{UNSUBSCRIBE}?{urlencode({'token': token})}",
        address=mask(address),
    )


async def unsubscribe(service: Service, request: OperationRequest[None, None]) -> OperationResult:
    """Unsubscribe at once; the sender and the body do not matter (RFC 8058)."""
    links, token = service[UnsubscribeLinks], read_token(request)
    subscriber = await service[Subscribers].find(token)
    if subscriber is not None:
        return await _change_subscription(service, request, subscriber)
    address = await links.subscriber(token)
    if address is None:
        return await _render_unknown_link(service, token)
    is_new = await links.unsubscribe(token, address)
    title = sentence("You are unsubscribed") if is_new else sentence("Already unsubscribed")
    try:
        return await _render_done(service, address, title)
    except Problem:  # the address is suppressed, but without a build no page can be rendered
        return _say_plainly(title)


async def _change_subscription(
    service: Service, request: OperationRequest[None, None], subscriber: Row
) -> OperationResult:
    """Make the change that the query names, without one the end, and show what came of it."""
    change = _CHANGES.get(dict(request.pairs).get("then", ""), Subscribers.leave)
    await change(service[Subscribers], subscriber)
    changed = await service[Subscribers].find(subscriber["token"])
    try:
        return await render_state(service, changed or subscriber, sentence("You are subscribed"))
    except Problem:  # without a build no page can be rendered
        return _say_plainly(sentence("It is done"))


def read_token(request: OperationRequest[Any, Any]) -> str:
    """Return the secret of a link."""
    return dict(request.pairs).get("token", "")


def _say_plainly(title: str) -> HtmlResult:
    return HtmlResult(
        f"{title}.\n".encode(), headers=NOINDEX, media_type="text/plain; charset=utf-8"
    )


def show_address(subscriber: Row) -> str:
    """Return the address of a subscriber, masked, for a sentence in any direction."""
    # Isolates keep it apart in a text that runs the other way, as `<bdi>` does.
    return f"\u2068{mask(subscriber['email'])}\u2069"


async def render_state(service: Service, subscriber: Row, title: str) -> HtmlResult:
    """Return the page with the state of a subscription; `title` is that of an open one."""
    address = show_address(subscriber)
    suppressed = await read_first(service.store, read_suppression(subscriber["email"]))
    buttons: dict[str, str] = {}
    if suppressed:
        title = sentence("You get no mail from this site")
        text = sentence("Nothing is mailed to %(address)s by this site.", address=address)
        if suppressed["reason"] == "unsubscribe":
            buttons["mail"] = sentence("Allow mail again")
    elif subscriber["status"] in ("pending", "active"):
        is_active = subscriber["status"] == "active"
        text = (
            sentence("New posts are mailed to %(address)s.", address=address)
            if is_active
            else sentence("Somebody asked for new posts to %(address)s.", address=address)
        )
        title = title if is_active else sentence("Unsubscribe")
        buttons["leave"] = sentence("Unsubscribe")
    else:
        title = sentence("You are unsubscribed")
        text = sentence("New posts are not mailed to %(address)s any more.", address=address)
        if subscriber["status"] == "ended" and subscriber["confirmed_at"]:
            buttons["resume"] = sentence("Subscribe again")
        buttons["no-mail"] = sentence("No mail at all from this site")
    links = [
        (f"{UNSUBSCRIBE}?{urlencode({'token': subscriber['token'], 'then': then})}", words)
        for then, words in buttons.items()
    ]
    return await render_page(service, "subscription", title, sentences=[text], buttons=links)


async def _render_done(service: Service, address: str, title: str) -> HtmlResult:
    notice = sentence("Nothing more is mailed to %(address)s by this site.", address=mask(address))
    return await render_page(service, "notice", title, sentences=[notice])


async def _render_unknown_link(service: Service, token: str) -> HtmlResult:
    """Return the page for an unknown link, by which nothing is mailed: what was asked is so."""
    return await render_page(
        service,
        "notice",
        sentence("This link is not known"),
        status=200 if token else 404,
        sentences=[
            sentence(
                "This link is not known here: nothing is mailed by it, and nothing was changed."
            ),
            sentence("It may have been cut off on its way: use the whole of the link in the mail."),
        ],
    )


async def render_page(
    service: Service, name: PageName, title: str, *, status: int = 200, **values: Any
) -> HtmlResult:
    """Return a page that no search engine lists. Raises Problem `unavailable`."""
    body = await service.pages.render(name, title, **values)
    return HtmlResult(body, status=status, headers=NOINDEX)


TOKEN: Final = Parameter(
    "token",
    "query",
    {"type": "string", "minLength": 1},
    "The secret of the link.",
    required=True,
)
_THEN: Final = Parameter(
    "then",
    "query",
    {"type": "string"},
    "For a link of the newsletter, in place of its end: `resume` takes that back, `no-mail` "
    "suppresses the address for all mail, `mail` takes that back. Any other value is ignored.",
)
_NO_TOKEN: Final = page(404, "A page: the link was cut off before its secret")

OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="show_unsubscribe",
        path=UNSUBSCRIBE,
        summary="Ask whether to end the mail that a link belongs to",
        description="Nothing is changed: programs fetch links to look at them.",
        tag="mail",
        error_format="page",
        handler=show_unsubscribe,
        parameters=(TOKEN,),
        responses=(page(200, "The question, or that the link is unknown"), _NO_TOKEN),
        problems=("unavailable",),
    ),
    Operation(
        name="unsubscribe",
        method="POST",
        path=UNSUBSCRIBE,
        summary="End the mail that a link belongs to, at once (RFC 8058)",
        description=(
            "A link of the newsletter ends that subscription and nothing else; one of another "
            "mail suppresses its address. The link has all that is needed. A body is ignored, be "
            "it `List-Unsubscribe=One-Click` or another, in any media type. "
            "Repeating it changes nothing."
        ),
        tag="mail",
        error_format="page",
        handler=unsubscribe,
        parameters=(TOKEN, _THEN),
        responses=(page(200, "Nothing more is mailed by the link", "text/plain"), _NO_TOKEN),
        problems=("unavailable",),
    ),
)
