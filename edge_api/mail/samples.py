"""Messages with sample values: for `mail preview`, and to check an operator's templates."""

from collections.abc import Mapping
from datetime import timedelta
from email.message import EmailMessage
from typing import Any, Final
from urllib.parse import urlsplit

from jinja2 import TemplateError, TemplateSyntaxError

from edge_api.auth.actor import new_id, system_clock
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.mail.messages import (
    DEFAULT_TEMPLATES,
    MESSAGE_TYPES,
    Envelope,
    MailTemplates,
    TemplateName,
    compose,
)
from edge_api.schema.paths import CLAIM_CREDENTIAL, DESK, UNSUBSCRIBE
from edge_api.settings import Settings, SettingsError

_LEAD: Final[Mapping[str, Any]] = {
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "budget_tier": "growth",
    "message": "We would like to talk about a new journal.\n\nWhen would it suit you?",
}
_REQUEST: Final[Mapping[str, Any]] = {
    "type": "api_key",
    "name": "Ada Lovelace",
    "purpose": "Read the posts from a program of mine.",
    "scopes": "posts:read",
    "claim_digest": "0" * 64,
    "expires_at": "2099-01-01T00:00:00.000000Z",
}
_RECIPIENT: Final = "ada@example.org"


def open_templates(settings: Settings) -> MailTemplates:
    """Return the templates, tried with sample values. Raises SettingsError naming file and line."""
    if settings.mail_templates is None:
        return DEFAULT_TEMPLATES
    templates = MailTemplates(settings.mail_templates)
    try:
        templates.check_names()
        for name in MESSAGE_TYPES:
            sample_message(name, settings, "Sample", templates)
    except TemplateSyntaxError as error:
        where = f"{error.name}, line {error.lineno}"
        raise SettingsError([f"MAIL_TEMPLATES: {where}: {error.message}"]) from None
    except TemplateError as error:
        raise SettingsError([f"MAIL_TEMPLATES: {name}: {error.message}"]) from None
    except (TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise SettingsError([f"MAIL_TEMPLATES: {name}: {error}"]) from None
    except ValueError as error:
        raise SettingsError([f"MAIL_TEMPLATES: {error}"]) from None
    return templates


def sample_message(
    template: TemplateName, settings: Settings, site_title: str, templates: MailTemplates
) -> EmailMessage:
    """Return a message with sample values. Raises as `compose`."""
    now = system_clock()
    values = {
        "lead": LEADS.new_row(_LEAD, format_instant(now), lambda: new_id(now)),
        "desk_url": f"{settings.site_url}{DESK}leads/",
        "link_url": f"{settings.site_url}{DESK}link/SAMPLE/",
        "number": 7,
        "request": ACCESS_REQUESTS.new_row(_REQUEST, format_instant(now), lambda: new_id(now)),
        "approved": True,
        "claim_uri": f"{settings.site_url}{CLAIM_CREDENTIAL}",
        "expires_at": format_instant(now + timedelta(days=14)),
        "site_title": site_title,
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
    given = {name: values[name] for name in MESSAGE_TYPES[template].values}
    return compose(template, envelope, given, templates)
