"""The audit log in sentences, such as "11 messages marked as spam", and who did it, in words."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from edge_api.auth.actor import ANYONE, OPERATOR, SERVICE, Actor, find_undoable
from edge_api.db.internal_tables import OAUTH_CLIENTS
from edge_api.db.query import Filter, Read, Store
from edge_api.db.table import Row
from edge_api.db.tables import CREDENTIALS, LEADS

ROW_NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "leads": ("message", "messages"),
    "lead_messages": ("answer", "answers"),
    "mailbox_state": ("state of the mailbox", "states of the mailbox"),
    "email_send_log": ("line of the mail log", "lines of the mail log"),
    "email_send_state": ("setting of the mail", "settings of the mail"),
    "email_unsubscribe_tokens": ("unsubscribe link", "unsubscribe links"),
    "suppressed_emails": ("address", "addresses"),
    "email_outbox": ("mail", "mails"),
    "mailings": ("mailing", "mailings"),
    "page_views": ("count of page views", "counts of page views"),
    "daily_figures": ("daily figure", "daily figures"),
    "subscribers": ("subscription", "subscriptions"),
    "credentials": ("key", "keys"),
    "idempotency_keys": ("repeatable answer", "repeatable answers"),
    "audit_log": ("line of the audit log", "lines of the audit log"),
    "webhook_endpoints": ("webhook", "webhooks"),
    "webhook_deliveries": ("event for a webhook", "events for webhooks"),
    "announced_posts": ("list of announced posts", "lists of announced posts"),
    "oauth_clients": ("app", "apps"),
    "oauth_grants": ("permission of an app", "permissions of apps"),
    "oauth_codes": ("code of an app", "codes of apps"),
    "oauth_refresh_tokens": ("token of an app", "tokens of apps"),
    "oauth_revoked_tokens": ("token of an app", "tokens of apps"),
    "oauth_assertions": ("proof of an app", "proofs of apps"),
    "oauth_signing_keys": ("signing key", "signing keys"),
    "access_requests": ("request for access", "requests for access"),
    "desk_links": ("sign-in link", "sign-in links"),
    "desk_sessions": ("sign-in", "sign-ins"),
    "former_rows": ("former version", "former versions"),
    "erased_rows": ("note of an erasure", "notes of erasures"),
}
"""The singular and plural nouns for rows of each table, in the owner's words."""

SENTENCES: Final[Mapping[str, str]] = {
    "add": "{what} {was} added",
    "approve": "{what} {was} approved",
    "choose": "other events were chosen for {what}",
    "claim": "the key of {what} was fetched",
    "delete": "{what} {was} deleted",
    "deny": "{what} {was} denied",
    "disable": "{what} {was} disabled",
    "discard": "{what} {was} discarded",
    "enable": "{what} {was} enabled",
    "erase": "{what} of a person {was} erased",
    "file": "{what} {was} filed",
    "forget": "{what} {was} deleted as too old",
    "insert": "{what} {was} added",
    "issue": "{what} {was} issued",
    "pause": "{what} {was} paused",
    "register": "{what} {was} registered",
    "remove": "{what} {was} removed",
    "restore": "{what} {was} adjusted when a backup was restored",
    "retry": "{what} {was} queued again",
    "revoke": "{what} {was} revoked",
    "rotate": "{what} {was} given another secret",
    "set_end": "the end of {what} was set",
    "trap": "{what} {was} denied: a program had filled in the hidden field",
    "undo": "a change of {what} was undone",
    "update": "{what} {was} changed",
}
"""The sentence of each verb, for any table."""

TABLE_SENTENCES: Final[Mapping[tuple[str, str], str]] = {
    ("desk_links", "issue"): "a sign-in link was printed",
    ("desk_sessions", "sign in"): "a sign-in at the desk",
    ("desk_sessions", "sign out"): "a sign-in at the desk was ended",
    ("oauth_grants", "grant"): "an app was let in",
    ("oauth_grants", "issue"): "an app got a token",
    ("oauth_grants", "refuse"): "an app was refused",
    ("mailings", "hold"): "{what} {was} held",
    ("mailings", "release"): "{what} {was} released",
    ("mailings", "resume"): "{what} {was} resumed",
    ("mailings", "skip"): "{what} {was} ended",
    ("mailings", "test"): "a letter was sent to the owner as a test",
    ("subscribers", "end"): "{what} {was} ended",
    ("subscribers", "import"): "{what} {was} imported",
    ("leads", "answer"): "{what} {was} answered",
    ("leads", "receive"): "a reply to {what} came by mail",
    ("leads", "take back"): "the answer to {what} was taken back",
    ("lead_messages", "save reply"): "a saved reply was changed",
    ("lead_messages", "delete reply"): "a saved reply was deleted",
    ("suppressed_emails", "delete"): "mail may go to {what} again",
    ("suppressed_emails", "insert"): "{what} {was} suppressed",
    ("credentials", "undo"): "the end of {what} was taken back",
    ("oauth_clients", "forget"): "{what} that nobody used {was} deleted",
    ("email_send_state", "update"): "the settings of the mail were changed",
    ("posts", "bin"): "{what} was binned",
    ("posts", "picture"): "{what} was added",
    ("posts", "publish"): "{what} was published",
    ("posts", "save"): "{what} was saved",
    ("posts", "schedule"): "{what} was scheduled",
    ("posts", "share"): "{what} was shared",
    ("posts", "withdraw"): "{what} was taken off the site",
}
"""The sentence of a verb in one table, where the general one would mislead."""

NAMED_ROWS: Final[Mapping[str, str]] = {
    "leads": "the message of <bdi>{}</bdi>",
    "access_requests": "the request of <bdi>{}</bdi> for access",
    "subscribers": "the subscription of <bdi>{}</bdi>",
    "suppressed_emails": "the address <bdi>{}</bdi>",
    "email_outbox": "the mail to <bdi>{}</bdi>",
}
"""The words for one row of a table, with its name in braces."""
_NAME_COLUMNS: Final = ("name", "email", "recipient_email", "url")
"""Columns that name a row; the first that is not empty counts."""
_ACTORS: Final = {
    "owner": "the owner",
    OPERATOR.label: "a command on the server",
    SERVICE.label: "the service",
    ANYONE.label: "a visitor",
}


async def describe(store: Store, entries: Sequence[Row], viewer: Actor) -> list[dict[str, Any]]:
    """Return entries of the audit log, each with its `sentence`, its actor and its `changes`."""
    changes = await find_undoable(store, [row["id"] for row in entries])
    parts = {part for row in entries for part in row["actor"].split()}
    ids = tuple(part.removeprefix("credential:") for part in parts)
    times = tuple(row["at"] for row in entries if row["table_name"] == CREDENTIALS.name)
    moments = ("created_at", "rotated_at", "revoked_at")
    known = (Filter("id", "in", ids), *(Filter(each, "in", times) for each in moments))
    apps = Filter("id", "in", tuple(part.removeprefix("client:") for part in parts))
    found, clients = await store.run(
        Read(CREDENTIALS, ("id", "name", *moments), (Filter("id", "any", known),)),
        Read(OAUTH_CLIENTS, ("id", "name"), (apps,)),
    )
    names = {f"credential:{row['id']}": f"the key {row['name']}" for row in found.rows}
    names |= {f"client:{row['id']}": f"the app {row['name']}" for row in clients.rows}
    # An entry does not name the key that it changed: the key has the instant of the entry.
    keys = {row[each]: row["name"] for row in found.rows for each in moments if row[each]}
    return [
        {
            **row,
            "sentence": write_sentence(row, changes.get(row["id"], ()), keys.get(row["at"], "")),
            "by": "you" if row["actor"] == viewer.label else _name_actor(row["actor"], names),
            "changes": changes.get(row["id"], ()),
        }
        for row in entries
    ]


def write_sentence(entry: Row, changes: Sequence[Row], key: str = "") -> Markup:
    """Return the sentence of an entry from the first rows that it changed, with a capital letter.

    `key` is the name of the API key that the entry is about, if any.
    """
    table, verb, number = entry["table_name"], entry["verb"], entry["rows"]
    one, many = ROW_NOUNS.get(table, (f"row of {table}", f"rows of {table}"))
    row = (changes[0]["changed"] or changes[0]["former"]) if changes else {}
    name = next((row[each] for each in _NAME_COLUMNS if str(row.get(each) or "").strip()), "")
    what: str = f"{one if number == 1 else f'{number:,} {many}'}"
    if number == 1 and key and table == CREDENTIALS.name:
        what = Markup("the key <bdi>{}</bdi>").format(key)
    elif number == 1 and name and table in NAMED_ROWS:
        what = Markup(NAMED_ROWS[table]).format(name)  # noqa: S704  a text of this module
    elif number == 1 and table == "posts":
        slug, _, version = entry.get("columns", "").partition(",")
        of = f"version {version[:7]} of the post" if version else "the picture"
        what = Markup("{} <bdi>{}</bdi>").format(of, slug)
    elif number == 1:
        what = f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
    pattern = TABLE_SENTENCES.get((table, verb)) or SENTENCES.get(verb, f"{{what}}: {verb}")
    if table == LEADS.name and verb in ("update", "undo"):
        pattern = _describe_lead(changes, is_undo=verb == "undo", number=number) or pattern
    text = Markup(pattern).format(what=what, was="was" if number == 1 else "were")  # noqa: S704
    return text if text.startswith("<") else Markup(text[:1].upper() + text[1:])  # noqa: S704


def _describe_lead(changes: Sequence[Row], *, number: int, is_undo: bool) -> str:
    """Return the pattern of a sentence on changed leads; empty if no row shows the change."""
    former, changed = (changes[0]["former"], changes[0]["changed"]) if changes else (None, None)
    if not (former and changed) or (is_undo and number > 1):  # other rows may have had other values
        return ""
    status = "answered" if changed["status"] == "contacted" else changed["status"]
    reminder = "set" if changed.get("remind_at") else "removed"
    said = {
        "status": f"{{what}} marked as {status}{' again' * is_undo}",
        "remind_at": f"the reminder of {{what}} was {reminder}",
        "notes": "the notes on {what} were " + ("as before again" if is_undo else "saved"),
    }
    first = ("remind_at",) if changed.get("remind_at") else ()  # the action was a reminder
    return next(
        (said[name] for name in (*first, *said) if former.get(name) != changed.get(name)), ""
    )


def _name_actor(label: str, names: Mapping[str, str]) -> Markup:
    known = [names[part] for part in reversed(label.split()) if part in names]
    said = _ACTORS.get(label) or " for ".join(known) or label
    return Markup("<bdi>{}</bdi>").format(said)
