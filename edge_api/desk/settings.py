"""The screens Settings (links to other screens, the edge's settings) and Suppressed addresses."""

from typing import Final, get_args

from edge_api.admin.rows import Rows
from edge_api.db.query import Filter, Order, Read, find_row, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, SUPPRESSED_EMAILS
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.mail.suppressions import Reason, normalize_recipient, suppress_by_hand
from edge_api.operation.input import FormErrors
from edge_api.settings import SETTINGS, show_value

LINKED_SCREENS: Final = (
    ("/desk/access/", "Access", "requests, keys, and who is signed in", ""),
    ("/desk/mail/", "Mail", "what waits, and what was given up", EMAIL_SEND_LOG.name),
    ("/desk/suppressed/", "Suppressed addresses", "who gets no mail", SUPPRESSED_EMAILS.name),
    ("/desk/replies/", "Saved replies", "texts for answers that you write often", ""),
    ("/desk/webhooks/", "Webhooks", "programs that hear of messages and posts", ""),
    ("/desk/tables/", "Tables", "every row as it is stored", None),
    ("/desk/audit/", "Audit", "what was done and by whom, with undo", None),
)
"""The address, name and purpose of each screen that Settings links to, and the table that the
sign-in must be allowed to use: an empty name stands for all tables, `None` requires no table."""


async def show_settings(visit: Visit) -> Values:
    """Return links to the screens that the sign-in may open.

    A sign-in that may use all tables gets the edge's settings too.
    """
    settings, shown = visit.service.settings, SETTINGS if visit.actor.may_use("") else {}
    return {
        "below": [
            each[:3] for each in LINKED_SCREENS if each[3] is None or visit.actor.may_use(each[3])
        ],
        "settings": [
            (name, show_value(getattr(settings, name.lower()), each), each.description)
            for name, each in shown.items()
        ],
    }


async def show_suppressed(visit: Visit) -> Values:
    """Return the newest suppressed addresses, or the one that is searched for."""
    email = visit.query.get("email", "").strip()
    where = (Filter("email", "in", (normalize_recipient(email), email.lower())),) if email else ()
    return {
        "email": email,
        "rows": await read_all(
            visit.service.store,
            Read(SUPPRESSED_EMAILS, where=where, order=(Order("id", descending=True),), limit=100),
        ),
        "reasons": get_args(Reason),
        "key": visit.path.get("key", ""),
    }


async def suppress(visit: Visit) -> str:
    """Suppress the address that was typed."""
    await suppress_by_hand(
        visit.service.store,
        visit.typed.get("email", "").strip(),
        visit.typed.get("reason", ""),
        visit.actor,
        visit.service.clock(),
    )
    return visit.here


async def lift_suppression(visit: Visit) -> str:
    """Lift a suppression; one that is not due to a bounce requires the ticked box."""
    row = await find_row(visit.service.store, SUPPRESSED_EMAILS, visit.path["key"])
    if row and row["reason"] != "bounce" and not visit.chosen("sure"):
        raise FormErrors({"sure": "Tick this box to mail them again."})
    if row:  # else it was lifted meanwhile
        await visit.service[Rows].delete(SUPPRESSED_EMAILS, {"id": row["id"]}, visit.actor)
    return visit.here


SUPPRESSED: Final = Screen(
    "/desk/suppressed/",
    "Suppressed addresses",
    "suppressed",
    show_suppressed,
    SUPPRESSED_EMAILS.name,
    section="Settings",
)
SCREENS: Final = (
    Screen(
        "/desk/settings/", "Settings", "settings", show_settings, nav="Settings", checks_tables=True
    ),
    SUPPRESSED,
)
ACTIONS: Final = (
    Action(SUPPRESSED.path, SUPPRESSED, suppress),
    Action("/desk/suppressed/{key}/lift/", SUPPRESSED, lift_suppression),
)
