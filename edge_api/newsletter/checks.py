"""Checks of the newsletter: SPF and DMARC of its sender, DKIM of a letter, hosts of old letters."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from email import message_from_bytes
from email.utils import parseaddr
from typing import Final

from dns.exception import DNSException
from dns.resolver import NXDOMAIN, NoAnswer, Resolver

from edge_api.db.mail_addresses import parse_mailbox
from edge_api.db.newsletter_tables import MAILINGS
from edge_api.db.query import Filter, Read, Store, read_all
from edge_api.db.types import format_instant
from edge_api.settings import Settings

SIGNED: Final = "List-Unsubscribe and List-Unsubscribe-Post"
"""Headers that one signature must cover, else mail programs show no button (RFC 8058, 4)."""


def check_sender(
    settings: Settings, notes: list[str], resolver: Resolver | None = None
) -> Iterator[str]:
    """Yield the faults of the DNS records of the sender's domain.

    `notes` collects what may be meant so.
    """
    if settings.newsletter_from is None or settings.newsletter == "off" or settings.is_loopback:
        return
    domain = parse_mailbox(settings.newsletter_from).domain
    labels = domain.split(".")
    # DMARC of a parent domain counts too (RFC 7489, section 6.6.3); one label is nobody's.
    parents = [".".join(labels[start:]) for start in range(max(1, len(labels) - 1))]
    try:
        resolver = resolver or Resolver()
        spf = [each for each in _read(domain, resolver) if re.match(r"(?i)v=spf1( |$)", each)]
        dmarc = [each for name in parents for each in _read(f"_dmarc.{name}", resolver)]
        exchanges = _read(domain, resolver, "MX")
    except DNSException as error:
        yield f"SPF and DMARC of {domain} are unknown: {error or 'no DNS server answers'}"
        return
    wanted = "one that names your relay and ends with ~all, as v=spf1 include:relay.example ~all"
    if not spf:  # SPF is asked of the envelope's domain, and many services put their own there
        notes.append(
            f"{domain} has no SPF record: it needs {wanted}, unless Return-Path of a test letter "
            "has another domain, and its Authentication-Results has dmarc=pass"
        )
    elif len(spf) > 1 or "all" in spf[0].lower().replace("+all", "all").split():
        yield f"the SPF record of {domain} is to be {wanted}; found: {'; '.join(spf)}"
    if not exchanges:
        yield (
            f"{domain} has no MX record, so replies and notices of failure find no mailbox: "
            "publish one, or send from a domain that has one"
        )
    if not any(each.startswith("v=DMARC1") for each in dmarc):
        yield f"{domain} has no DMARC record: publish v=DMARC1; p=none as TXT at _dmarc.{domain}"


def _read(name: str, resolver: Resolver, kind: str = "TXT") -> list[str]:
    """Return the records of a name, without an MX record that refuses all mail (RFC 7505)."""
    try:
        found = resolver.resolve(name, kind, lifetime=5)
    except (NXDOMAIN, NoAnswer):
        return []
    if kind == "TXT":
        return [b"".join(each.strings).decode(errors="replace") for each in found]
    return [text for each in found if (text := each.to_text()) != "0 ."]


async def find_former_hosts(settings: Settings, store: Store, now: datetime) -> list[str]:
    """Return a sentence for each host that letters of 60 days name and SITE_URL does not."""
    host = settings.site_host
    recent = Filter("due_at", "gt", format_instant(now - timedelta(days=60)))
    where = recent, Filter("recipients", "gt", 0), Filter("host", "neq", host)
    hosts = {row["host"] for row in await read_all(store, Read(MAILINGS, ("id", "host"), where))}
    return [
        f"letters of the last 60 days link to {each}, and SITE_URL is {settings.site_url}: let "
        f"{each} answer too, or redirect each path of it with its query (308)"
        for each in sorted(hosts)
    ]


def check_letter(raw: bytes) -> str:
    """Return why mail programs show no unsubscribe button for a received letter; empty: they do."""
    message = message_from_bytes(raw)
    sender = parseaddr(str(message["From"]))[1].rpartition("@")[2].lower()
    needed = SIGNED.split(" and ")
    if missing := " and no ".join(name for name in needed if name not in message):
        return (
            f"the message has no {missing}: save it with all its headers; letters have it where "
            "SITE_URL is https"
        )
    for value in message.get_all("DKIM-Signature", []):
        parts = re.sub(r"\s", "", str(value)).lower().split(";")
        tags = {name: text for name, _, text in (each.partition("=") for each in parts)}
        domain = tags.get("d", "")
        # One label, such as net, is nobody's domain.
        is_own = "." in domain and f".{sender}".endswith(f".{domain}")
        if is_own and {*map(str.lower, needed)} <= {*tags.get("h", "").split(":")}:
            return ""
    return f"no DKIM signature of {sender} covers {SIGNED}: let your relay sign both, within h="
