"""The screens Newsletter (mailings, and how many get them) and Subscribers (who these are)."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Order, Read, read_all
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.subscribers import STATUSES, Subscribers

MOST_SHOWN: Final = 100


async def show_newsletter(visit: Visit) -> Values:
    """Return the newest mailings, and the numbers of subscribers."""
    service = visit.service
    if service.settings.newsletter == "off":
        raise Problem("unavailable", "The newsletter is off here; NEWSLETTER=on switches it on")
    return {
        "mailings": await service[Mailings].recent(),
        "counts": await service[Subscribers].count(),
        "owner": service.settings.owner_email,
        "delay": service.settings.newsletter_delay,
    }


async def show_subscribers(visit: Visit) -> Values:
    """Return the newest subscribers, of a status or with a part of an address if one is chosen."""
    status, email = visit.query.get("status", ""), visit.query.get("email", "").strip()
    part = re.sub(r"([\\*%_])", r"\\\1", email)
    where = (Filter("email", "ilike", f"*{part}*"),) if email else ()
    if status in STATUSES:
        where = (*where, Filter("status", "eq", status))
    newest = (Order("id", descending=True),)
    read = Read(SUBSCRIBERS, where=where, order=newest, limit=MOST_SHOWN)
    return {
        "rows": await read_all(visit.service.store, read),
        "counts": await visit.service[Subscribers].count(),
        "chosen": status,
        "email": email,
        "most": MOST_SHOWN,
    }


async def _mail(change: Callable[[Mailings, Visit], Awaitable[object]], visit: Visit) -> str:
    """Release or resume a mailing, unless more would get it than the button said."""
    active, said = (await visit.service[Subscribers].count())["active"], visit.typed.get("to", "")
    if not said.isdecimal() or active > int(said[:9]):
        raise Problem("conflict", f"Nothing was mailed: {active:,} are subscribed now; press again")
    await change(visit.service[Mailings], visit)
    return visit.here


async def test(visit: Visit) -> str:
    """Send the owner a letter: of the post that the form names, or of the newest."""
    await visit.service[Mailings].test(visit.actor, visit.typed.get("slug", ""))
    return visit.here


async def _change(method: Callable[..., Awaitable[None]], visit: Visit) -> str:
    """Hold or end a mailing."""
    await method(visit.service[Mailings], visit.path["key"], visit.actor)
    return visit.here


async def end(visit: Visit) -> str:
    """End a subscription; nothing here begins one, which takes a confirmation by mail."""
    await visit.service[Subscribers].end(visit.path["key"], visit.actor)
    return visit.here


NEWSLETTER: Final = Screen(
    "/desk/newsletter/",
    "Newsletter",
    "newsletter",
    show_newsletter,
    nav="Newsletter",
    switch="newsletter",
)
LISTED: Final = Screen(
    "/desk/newsletter/subscribers/",
    "Subscribers",
    "subscribers",
    show_subscribers,
    section="Newsletter",
)
SCREENS: Final = (NEWSLETTER, LISTED)
ACTIONS: Final = (
    Action("/desk/newsletter/test/", NEWSLETTER, test),
    Action(
        "/desk/newsletter/posts/{slug}/release/",
        NEWSLETTER,
        partial(_mail, lambda mailings, visit: mailings.release(visit.path["slug"], visit.actor)),
        needs_fresh_sign_in=True,
    ),
    Action(
        "/desk/newsletter/{key}/resume/",
        NEWSLETTER,
        partial(_mail, lambda mailings, visit: mailings.resume(visit.path["key"], visit.actor)),
        needs_fresh_sign_in=True,
    ),
    Action("/desk/newsletter/{key}/hold/", NEWSLETTER, partial(_change, Mailings.hold)),
    Action("/desk/newsletter/{key}/skip/", NEWSLETTER, partial(_change, Mailings.skip)),
    Action("/desk/newsletter/subscribers/{key}/end/", LISTED, end),
)
