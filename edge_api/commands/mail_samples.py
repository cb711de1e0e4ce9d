"""What `mail preview` shows: each message, with values that were made up."""

from collections.abc import Mapping
from datetime import timedelta
from email.message import EmailMessage
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from edge_api.commands.clock import system_clock
from edge_api.commands.mailing import site_title
from edge_api.domain.identity import new_id
from edge_api.domain.mail.compose import Envelope, TemplateName, compose
from edge_api.domain.mail.wording import TEMPLATES
from edge_api.schema.kinds import spell_instant
from edge_api.schema.paths import CLAIM_CREDENTIAL, UNSUBSCRIBE
from edge_api.schema.tables import LEADS
from edge_api.settings import Settings

_LEAD: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "name": "Ada Lovelace",
        "email": "ada@example.org",
        "budget_tier": "growth",
        "message": "We would like to talk about a new journal.\n\nWhen would it suit you?",
    }
)
_RECIPIENT: Final = "ada@example.org"


def sample_message(template: TemplateName, settings: Settings) -> EmailMessage:
    """Return a message as it would be sent now."""
    now = system_clock()
    values = {
        "lead": LEADS.new_row(_LEAD, spell_instant(now), lambda: new_id(now)),
        "approved": True,
        "claim_uri": f"{settings.site_url}{CLAIM_CREDENTIAL}",
        "expires_at": spell_instant(now + timedelta(days=14)),
        "site_title": site_title(settings),
        "site_url": settings.site_url,
    }
    envelope = Envelope(
        message_id=new_id(now),
        sender=settings.mail_from or "owner@example.org",
        recipient=_RECIPIENT,
        date=now,
        host=urlsplit(settings.site_url).hostname or "localhost",
        unsubscribe_url=f"{settings.site_url}{UNSUBSCRIBE}?token=SAMPLE",
    )
    named = {name: values[name] for name in TEMPLATES[template].values}
    return compose(template, envelope, named)
