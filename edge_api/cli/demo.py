"""The rows of a demonstration: a made-up month, which ends now and comes in by the usual ways.

Its events are in `demo.toml`. Each happens at an instant of its own: the parts of the service get a
clock that was set back, and mail goes into the maildir of SMTP_URL.
"""

import fcntl
import os
import shutil
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from edge_api.access.service import AccessRequestInput, AccessRequests
from edge_api.app import assemble
from edge_api.auth.actor import system_clock
from edge_api.db.errors import StoreRefusal
from edge_api.db.newsletter_tables import SUBSCRIBERS
from edge_api.db.query import NEWEST, Filter, Read, read_all
from edge_api.db.tables import EMAIL_SEND_LOG, LEADS
from edge_api.db.types import format_instant
from edge_api.desk.sessions import OWNER
from edge_api.leads.input import LeadInput
from edge_api.leads.service import Leads, Sender
from edge_api.mail.answers import Answers
from edge_api.mail.dispatcher import MailService
from edge_api.mail.incoming import IncomingMail
from edge_api.mail.suppressions import Feedback
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.sending import Letters
from edge_api.newsletter.subscribers import Subscribers
from edge_api.operation.model import Service
from edge_api.schema.index import CURRENT_LINK
from edge_api.settings import Settings
from edge_api.stats.counter import RowKey, make_inserts
from edge_api.webhooks.endpoints import Endpoints

_DAY: Final = timedelta(days=1)
_PREFIX: Final = ".demo-"
"""Begins the names of folders in which a store is made; a process that was killed leaves one."""
_ROWS: Final = {
    "lead": (LEADS, "email"),
    "subscriber": (SUBSCRIBERS, "email"),
    "mail": (EMAIL_SEND_LOG, "recipient_email"),
}
"""Members of events in which an address stands for its newest row."""


async def fill_store(settings: Settings) -> None:
    """Make the store of a demonstration with its rows, unless it is there, or no build is yet.

    It is made in a folder beside and moved when it is complete. Raises StoreRefusal and Problem,
    and StoreRefusal too while another process does the same.
    """
    path, build = settings.database_path, settings.build_dir / CURRENT_LINK
    if path is None or path.exists() or not build.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreRefusal(
                f"another process makes the demonstration's store {path}: wait for it, or end it"
            ) from None
        if not path.exists():  # another process may have made it before the lock was free
            await _make_store(settings, path)
    finally:
        os.close(lock)


async def _make_store(settings: Settings, path: Path) -> None:
    for killed in path.parent.glob(f"{_PREFIX}*"):
        shutil.rmtree(killed)
    with TemporaryDirectory(prefix=_PREFIX, dir=path.parent) as folder:
        place = Path(folder, path.name)
        await _play(replace(settings, database_url=f"sqlite:///{place}", newsletter_rate=1000))
        # The store last: without it, the next start makes all of it again.
        for file in sorted(place.parent.iterdir(), key=lambda each: each == place):
            file.replace(path.with_name(file.name))


async def _play(settings: Settings) -> None:
    """Let all events happen, the oldest first, and store how many read the journal each day."""
    data = tomllib.loads(files("edge_api.cli").joinpath("demo.toml").read_text(encoding="utf-8"))
    subscribers = [
        {"do": do, "ago": ago - later, name: email}
        for email, ago in data["subscribers"].items()
        for do, name, later in (("subscribe", "email", 0), ("confirm", "subscriber", 0.01))
    ]
    events = sorted([*data["events"], *subscribers], key=itemgetter("ago"), reverse=True)
    began = now = system_clock()
    async with assemble(settings, lambda: now) as assembly:
        service = assembly.service
        methods = _list_methods(service)
        for event in events:
            now = began - event.pop("ago") * _DAY
            for name in event.keys() & _ROWS.keys():
                table, column = _ROWS[name]
                where = (Filter(column, "eq", event[name]),)
                (event[name],) = await read_all(service.store, Read(table, (), where, NEWEST, 1))
            is_sent = event.pop("is_sent", True)
            await methods[event.pop("do")](**event)
            # Answers wait for seconds, and mailings for minutes.
            for _ in range(settings.newsletter_delay + 2 if is_sent else 0):
                now += timedelta(minutes=1)
                await service[Letters].queue(service[Mailings])
                while await service[MailService].dispatcher.send_batch():
                    pass
        now = began
        for age in range(35):
            day, chance = str((began - age * _DAY).date()), Random(age)  # noqa: S311  no secret
            counts: dict[RowKey, int] = {
                (day, each["path"], each["kind"], each.get("agent", "")): round(
                    each["daily"] * chance.uniform(0.6, 1.4)
                )
                for each in data["readers"]
                if age <= each.get("since", age)
            }
            people = sum(number for key, number in counts.items() if key[2] == "person")
            counts |= {
                (day, "referrer", host): round(people * share)
                for host, share in data["referrers"].items()
            }
            counts[day, "visitors", "person"] = round(people * 0.6)
            seen = {key: number for key, number in counts.items() if number}
            await service.store.run(*make_inserts(seen))


def _list_methods(service: Service) -> Mapping[str, Callable[..., Awaitable[object]]]:
    """Return what an event can do by name; its other members are the arguments."""
    settings, signup = service.settings, {"language": "en", "source": "/subscribe/"}
    incoming = IncomingMail(settings, service.store, service.clock, service[Feedback])
    return {
        # The sender's address stands for the one on the network, so that no limit is reached.
        "lead": lambda sender, **given: service[Leads].create(
            LeadInput(**given), Sender(None, given["email"], **sender)
        ),
        "mark": lambda lead, status, remind_in=None: service[Leads].mark(
            [lead["id"]],
            status,
            OWNER,
            remind_in and format_instant(system_clock() + remind_in * _DAY),
        ),
        "answer": lambda lead, text: service[Answers].send(lead, text, "", OWNER),
        "draft": lambda lead, text: service[Answers].save_draft(lead, text, ""),
        "receive": lambda mail, raw: incoming.receive(
            raw.replace("MESSAGE_ID", f"<{mail['message_id']}@{settings.site_host}>").encode()
        ),
        "subscribe": lambda email: service[Subscribers].ask(
            {**signup, "email": email, "consent": "New posts by mail"}
        ),
        "confirm": service[Subscribers].confirm,
        "leave": service[Subscribers].leave,
        "test": lambda slug: service[Mailings].test(OWNER, slug),
        "release": lambda slug: service[Mailings].release(slug, OWNER),
        "request": lambda **given: service[AccessRequests].submit(
            AccessRequestInput(**given), given["email"]
        ),
        "webhook": service[Endpoints].with_actor(OWNER).add,
    }
