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
from edge_api.newsletter.subscribers import (
    MAX_CONFIRMATIONS_PER_HOUR,
    NEWSLETTER_OFF,
    STATUSES,
    Subscribers,
)


async def show_newsletter(visit: Visit) -> Values:
    """Return the newest mailings, and the numbers of subscribers."""
    service = visit.service
    if service.settings.newsletter == "off":
        raise Problem("unavailable", NEWSLETTER_OFF)
    return {
        "mailings": await service[Mailings].recent(),
        "counts": await service[Subscribers].count(),
        "delayed": await service[Subscribers].count_delayed(),
        "most": MAX_CONFIRMATIONS_PER_HOUR,
        "owner": service.settings.owner_email,
        "delay": service.settings.newsletter_delay,
    }


async def show_subscribers(visit: Visit) -> Values:
    """Return the newest subscribers, of a status or with a part of an address if one is chosen."""
    status, email = visit.query.get("status", ""), visit.query.get("email", "").strip()
    # PostgreSQL takes no text with NUL; no address has a replacement character.
    part = re.sub(r"([\\*%_])", r"\\\1", email).replace("\0", "\ufffd")
    chosen = Filter("status", "in", (status,) if status in STATUSES else STATUSES)
    where, newest = (Filter("email", "ilike", f"*{part}*"), chosen), (Order("id", descending=True),)
    return {
        "rows": await read_all(visit.service.store, Read(SUBSCRIBERS, (), where, newest, 100)),
        "counts": await visit.service[Subscribers].count(),
        "chosen": status,
        "email": email,
    }


async def _run(change: Callable[[Visit], Awaitable[object]], visit: Visit) -> str:
    await change(visit)
    return visit.here


async def _mail(change: Callable[[Visit], Awaitable[object]], visit: Visit) -> str:
    """Release or resume a mailing, unless more would get it than the button said."""
    active, said = (await visit.service[Subscribers].count())["active"], visit.typed.get("to", "")
    if not said.isdecimal() or active > int(said[:9]):
        raise Problem("conflict", f"Nothing was mailed: {active:,} are subscribed now; press again")
    return await _run(change, visit)


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
# Nothing here begins a subscription: that takes a confirmation by mail.
ACTIONS: Final = (
    Action(
        f"{NEWSLETTER.path}test/",
        NEWSLETTER,
        partial(
            _run,
            lambda visit: visit.service[Mailings].test(visit.actor, visit.typed.get("slug", "")),
        ),
    ),
    Action(
        f"{NEWSLETTER.path}{{key}}/hold/",
        NEWSLETTER,
        partial(_run, lambda visit: visit.service[Mailings].hold(visit.path["key"], visit.actor)),
    ),
    Action(
        f"{NEWSLETTER.path}{{key}}/skip/",
        NEWSLETTER,
        partial(_run, lambda visit: visit.service[Mailings].skip(visit.path["key"], visit.actor)),
    ),
    # Letters go out after these two: an old sign-in is too old for them.
    Action(
        f"{NEWSLETTER.path}posts/{{slug}}/release/",
        NEWSLETTER,
        partial(
            _mail,
            lambda visit: visit.service[Mailings].release(visit.path["slug"], visit.actor),
        ),
        needs_fresh_sign_in=True,
    ),
    Action(
        f"{NEWSLETTER.path}{{key}}/resume/",
        NEWSLETTER,
        partial(
            _mail, lambda visit: visit.service[Mailings].resume(visit.path["key"], visit.actor)
        ),
        needs_fresh_sign_in=True,
    ),
    Action(
        f"{LISTED.path}{{key}}/end/",
        LISTED,
        partial(_run, lambda visit: visit.service[Subscribers].end(visit.path["key"], visit.actor)),
    ),
)
