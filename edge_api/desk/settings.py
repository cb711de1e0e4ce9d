"""The screens of Settings: links, the edge's settings, suppressed addresses, replies, webhooks.

Saved replies are Markdown files beside the store. A file is written under another name and renamed,
so that a full disk leaves the former text. Symbolic links are not followed, neither to read nor to
write.
"""

import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final, get_args

from edge_api.admin.rows import Rows
from edge_api.auth.actor import audit_entry
from edge_api.backup.files import write_private
from edge_api.db.problems import Problem
from edge_api.db.query import Filter, Order, Read, find_row, read_all
from edge_api.db.table import Row
from edge_api.db.tables import EMAIL_SEND_LOG, LEAD_MESSAGES, LEADS, SUPPRESSED_EMAILS
from edge_api.desk.screens import Action, Screen, Values, Visit, render
from edge_api.mail.suppressions import Reason, normalize_recipient, suppress_by_hand
from edge_api.operation.input import FormErrors, TextRule
from edge_api.operation.model import OperationResult
from edge_api.settings import SETTINGS, Settings, show_value
from edge_api.webhooks.endpoints import EVENTS, Endpoints


async def show_webhooks(visit: Visit) -> Values:
    """Return the endpoints, and the newest deliveries that failed."""
    return {
        "endpoints": await _endpoints(visit).all(),
        "failed": await _endpoints(visit).failed(limit=50),
        "events": EVENTS,
        "key": visit.path.get("key", ""),
        "chosen": visit.chosen,
        "tested": visit.query.get("tested"),
    }


def _endpoints(visit: Visit) -> Endpoints:
    return visit.service[Endpoints].with_actor(visit.actor)


def _events(visit: Visit) -> tuple[str, ...]:
    if not visit.chosen("event") or not set(visit.chosen("event")) <= set(EVENTS):
        raise FormErrors({"event": "Tick at least one event."})
    return visit.chosen("event")


async def add_webhook(visit: Visit) -> OperationResult:
    """Add an endpoint and show its secret once."""
    url = visit.typed.get("url", "").strip()
    return await _show_secret(visit, await _endpoints(visit).add(url, _events(visit)))


async def rotate_secret(visit: Visit) -> OperationResult:
    """Give an endpoint a new secret and show it once, unless another window has done so."""
    row = await _endpoints(visit).rotate(
        visit.path["key"], expected_former_until=visit.typed.get("former_until", "")
    )
    return await _show_secret(visit, row)


async def _show_secret(visit: Visit, row: Row) -> OperationResult:
    return await render(
        visit.service,
        "secret",
        "The secret of a webhook",
        name=row["url"],
        secret=row["secret"],
        back=WEBHOOKS.path,
    )


async def choose_events(visit: Visit) -> str:
    """Set the events that an endpoint gets from now on."""
    await _endpoints(visit).set_events(visit.path["key"], _events(visit))
    return WEBHOOKS.path


async def test_webhook(visit: Visit) -> str:
    """Send a test event now. Raises Problem `conflict` if it did not arrive."""
    result = await _endpoints(visit).test(visit.path["key"])
    if not result.is_delivered:
        raise Problem("conflict", f"The test event did not arrive: {result.message}")
    return f"{WEBHOOKS.path}?tested={visit.path['key']}"


async def remove_webhook(visit: Visit) -> str:
    """Remove an endpoint with its waiting deliveries, if the box is ticked."""
    if not visit.chosen("sure"):
        raise FormErrors({"sure": "Tick this box to remove it."})
    return await _change(Endpoints.remove, visit)


async def _change(method: Callable[..., Awaitable[object]], visit: Visit) -> str:
    """Run a method on the endpoint that the address names, and the delivery, if it names one."""
    await method(_endpoints(visit), *visit.path.values())
    return WEBHOOKS.path


WEBHOOKS: Final = Screen(
    "/desk/webhooks/", "Webhooks", "webhooks", show_webhooks, section="Settings"
)
# Actions that send events elsewhere need a fresh sign-in; those that stop or repeat them do not.
_WEBHOOK_ACTIONS: Final = (
    Action(WEBHOOKS.path, WEBHOOKS, add_webhook, needs_fresh_sign_in=True),
    Action("/desk/webhooks/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action("/desk/webhooks/{key}/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action("/desk/webhooks/{key}/discard/", WEBHOOKS, partial(_change, Endpoints.discard)),
    Action("/desk/webhooks/{key}/{delivery}/retry/", WEBHOOKS, partial(_change, Endpoints.retry)),
    Action(
        "/desk/webhooks/{key}/{delivery}/discard/", WEBHOOKS, partial(_change, Endpoints.discard)
    ),
    Action("/desk/webhooks/{key}/rotate/", WEBHOOKS, rotate_secret, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/events/", WEBHOOKS, choose_events, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/pause/", WEBHOOKS, partial(_change, Endpoints.pause)),
    Action(
        "/desk/webhooks/{key}/resume/",
        WEBHOOKS,
        partial(_change, Endpoints.enable),
        needs_fresh_sign_in=True,
    ),
    Action("/desk/webhooks/{key}/test/", WEBHOOKS, test_webhook, needs_fresh_sign_in=True),
    Action("/desk/webhooks/{key}/remove/", WEBHOOKS, remove_webhook, needs_fresh_sign_in=True),
)


MAX_REPLIES: Final = 100
MAX_REPLY_LENGTH: Final = 20_000  # characters of a reply
_REPLY_NAME: Final = re.compile(r"\w[\w '\u2019,!?()&+-]{0,59}")
"""Letters, digits and some punctuation: no dot, no slash, nothing else that paths interpret."""
_REPLY_RULE: Final = TextRule(MAX_REPLY_LENGTH, "lines")
REPLIES_PATH: Final = "/desk/replies/"


def list_replies(settings: Settings) -> dict[str, str]:
    """Return the text of each saved reply by its name; a file that is no valid one is left out."""
    found: dict[str, str] = {}
    with suppress(OSError):  # no folder yet, or not ours
        for file in sorted(_replies_folder(settings).glob("*.md")):
            if _REPLY_NAME.fullmatch(file.stem) and file.is_file() and not file.is_symlink():
                with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as stream:
                    text = stream.read(MAX_REPLY_LENGTH + 1)
                    found |= {file.stem: text} if len(text) <= MAX_REPLY_LENGTH else {}
    return found


def _replies_folder(settings: Settings) -> Path:
    """Return the folder beside the store; with PostgreSQL, in `var` beside the builds."""
    store = settings.database_path
    return (store.parent if store else settings.build_dir.parent / "var") / "replies"


async def show_replies(visit: Visit) -> Values:
    """Return all replies."""
    return {"replies": list_replies(visit.service.settings), "most": MAX_REPLY_LENGTH}


async def save_reply(visit: Visit) -> str:
    """Store or delete a reply, unless it has changed since the form was shown."""
    name, text = " ".join(visit.typed.get("name", "").split()), ""
    if not _REPLY_NAME.fullmatch(name):
        raise FormErrors({"name": "Use 1 to 60 letters, digits, spaces and , ! ? ( ) & + -"})
    if "delete" not in visit.typed:
        try:
            text = _REPLY_RULE.clean(visit.typed.get("text", ""))
        except ValueError as error:
            raise FormErrors({"text": f"The text {error}."}) from None
    service, was = visit.service, visit.typed.get("was", "")
    # Nothing is awaited from here on, so that no other request comes in between.
    replies, folder = list_replies(service.settings), _replies_folder(service.settings)
    file, current = folder / f"{name}.md", replies.get(name, "")
    if current == text:  # the button was pressed twice
        return REPLIES_PATH
    if current != was:
        said = f"changed to: {current}" if current else "deleted."
        kept = "What you typed is kept here; save again to replace it."
        raise FormErrors({"text": f"Meanwhile {name} was {said}\n{kept}"})
    if not current and len(replies) >= MAX_REPLIES:
        raise FormErrors({"name": f"{MAX_REPLIES} replies are the most: delete one first."})
    _write_reply(file, text, is_new=not current)
    verb = "save reply" if text else "delete reply"
    await service.store.run(audit_entry(visit.actor, verb, LEAD_MESSAGES, 1, service.clock()))
    return REPLIES_PATH


def _write_reply(file: Path, text: str, *, is_new: bool) -> None:
    """Replace a file, or delete it if there is no text. Raises FormErrors.

    A new reply replaces nothing: neither a link nor a file that is not a reply.
    """
    temporary = file.with_name(f".{token_hex(8)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not text:
            file.unlink(missing_ok=True)
        else:
            write_private(temporary, text.encode())
            (os.link if is_new else os.replace)(temporary, file)
    except OSError as error:
        raise FormErrors({"form": f"Nothing was changed: {file}: {error.strerror}."}) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


REPLIES: Final = Screen(
    REPLIES_PATH, "Saved replies", "replies", show_replies, LEADS.name, section="Settings"
)


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


async def suppress_address(visit: Visit) -> str:
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
    REPLIES,
    WEBHOOKS,
)
ACTIONS: Final = (
    Action(SUPPRESSED.path, SUPPRESSED, suppress_address),
    Action("/desk/suppressed/{key}/lift/", SUPPRESSED, lift_suppression),
    Action(REPLIES_PATH, REPLIES, save_reply),
    *_WEBHOOK_ACTIONS,
)
