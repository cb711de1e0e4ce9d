"""The operator's mail templates, tried with a sample message of each kind."""

from collections.abc import Mapping
from datetime import timedelta
from email.message import EmailMessage
from typing import Any, Final

from jinja2 import TemplateError, TemplateSyntaxError

from edge_api.auth.actor import new_id, system_clock
from edge_api.auth.keys import UNDO_TIME
from edge_api.db.internal_tables import ACCESS_REQUESTS
from edge_api.db.tables import LEADS
from edge_api.db.types import format_instant
from edge_api.mail.messages import (
    DEFAULT_TEMPLATES,
    MESSAGE_TYPES,
    Envelope,
    MailTemplates,
    compose,
)
from edge_api.mail.preparation import site_language
from edge_api.schema.environment import SettingsError
from edge_api.schema.paths import CLAIM_CREDENTIAL, CONFIRM_SUBSCRIPTION, DESK, UNSUBSCRIBE
from edge_api.settings import Settings
from edge_api.stats.reading import KINDS

_SAMPLE_LEAD: Final[Mapping[str, Any]] = {
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "budget_tier": "growth",
    "message": "We would like to talk about a new journal.\n\nWhen would it suit you?",
}
_SAMPLE_REQUEST: Final[Mapping[str, Any]] = {
    "type": "api_key",
    "name": "Ada Lovelace",
    "purpose": "Read the posts from a program of mine.",
    "scopes": "posts:read",
    "claim_digest": "0" * 64,
    "expires_at": "2099-01-01T00:00:00.000000Z",
}

_SAMPLE_STATS: Final[Mapping[str, Any]] = {
    "visitors": 214,
    "views": 431,
    "pages": [{"path": "/journal/two-winters/", "views": 120, "others": 33}],
    "referrers": [{"name": "news.example.org", "count": 58}],
    "kinds": [{"kind": "ai_crawler", "views": 97}],
}


def open_templates(settings: Settings) -> MailTemplates:
    """Return the templates, tried with sample values. Raises SettingsError with file and line."""
    if settings.mail_templates is None:
        return DEFAULT_TEMPLATES
    try:
        templates = MailTemplates(settings.mail_templates)
        for name in MESSAGE_TYPES:
            sample_message(name, settings, "Sample", templates)
    except TemplateSyntaxError as error:
        where = f"{error.name}, line {error.lineno}"
        raise SettingsError([f"MAIL_TEMPLATES: {where}: {error.message}"]) from None
    except (TemplateError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise SettingsError([f"MAIL_TEMPLATES: {name}: {error}"]) from None
    except ValueError as error:
        raise SettingsError([f"MAIL_TEMPLATES: {error}"]) from None
    return templates


def sample_message(
    template: str, settings: Settings, site_title: str, templates: MailTemplates
) -> EmailMessage:
    """Return a message with sample values. Raises as `compose`."""
    now = system_clock()
    values = {
        "lead": LEADS.new_row(_SAMPLE_LEAD, format_instant(now), lambda: new_id(now)),
        "desk_url": f"{settings.site_url}{DESK}leads/",
        "link_url": f"{settings.site_url}{DESK}link/SAMPLE/",
        "key": {
            "name": "Reading list app",
            "last_four": "Q9zY",
            "scopes": "posts:read",
            "revoked_at": format_instant(now),
        },
        "undo_until": format_instant(now + UNDO_TIME),
        "number": 7,
        "leads": [LEADS.new_row(_SAMPLE_LEAD, format_instant(now), lambda: new_id(now))],
        "sentence": "214 people read you this week, 38 more than last.",
        "stats": _SAMPLE_STATS,
        "kinds": KINDS,
        "request": ACCESS_REQUESTS.new_row(
            _SAMPLE_REQUEST, format_instant(now), lambda: new_id(now)
        ),
        "approved": True,
        "claim_uri": f"{settings.site_url}{CLAIM_CREDENTIAL}",
        "expires_at": format_instant(now + timedelta(days=14)),
        "mailing": {"subject": "Two winters", "held_at": None, "waits_for": "it is a sample"},
        "confirm_url": f"{settings.site_url}{CONFIRM_SUBSCRIPTION}?token=SAMPLE",
        "leave_url": f"{settings.site_url}{UNSUBSCRIBE}?token=SAMPLE",
        "answer": {"subject": "Re: a new journal", "body": "Thursday at ten?\n\nGrace"},
        "quoted": {
            "name": _SAMPLE_LEAD["name"],
            "at": format_instant(now),
            "text": _SAMPLE_LEAD["message"],
        },
        "site_title": site_title,
        "site_url": settings.site_url,
    }
    envelope = Envelope(
        message_id=new_id(now),
        sender=settings.mail_from or "owner@example.org",
        recipient="ada@example.org",
        date=now,
        host=settings.site_host,
        unsubscribe_url=f"{settings.site_url}{UNSUBSCRIBE}?token=SAMPLE",
    )
    given = {name: values[name] for name in MESSAGE_TYPES[template].values}
    return compose(template, envelope, given, templates, site_language(settings))
