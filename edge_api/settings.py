"""Every setting of the edge, in one table; the environment wins over a `.env` file."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from dotenv import dotenv_values

from edge_api.db.mail_addresses import MailServer, check_mailbox, check_relay, parse_imap
from edge_api.schema.environment import (
    BUILD,
    LITESTREAM_PREFIXES,
    SettingsError,
    read_boolean,
    read_bucket,
    read_database,
    read_origin,
    read_variables,
    redact_database,
    sqlite_file,
)
from edge_api.setting_values import (
    number_between,
    one_of,
    read_build_keys,
    read_days,
    read_hook_secrets,
    read_https,
    read_networks,
    read_port,
    read_port_or_socket,
    read_recipients,
    read_replica,
    read_schemes,
    read_secret,
)


def _rate(text: str) -> str:
    if text not in ("0", *_DEFAULT_RATES) and not _is_rate(text):
        raise ValueError("must be like 5/10minutes;20/day, or 0 for no limit")
    return text


def _is_rate(text: str) -> bool:
    from limits import parse_many  # noqa: PLC0415  slow to import, and defaults need no check

    try:
        items = parse_many(text)
    except ValueError:
        return False
    counts = all(int(number) for number in re.findall(r"[0-9]+", text))
    return counts and all(item.get_expiry() <= 366 * 24 * 60 * 60 for item in items)  # a year


@dataclass(frozen=True, slots=True)
class Setting:
    """One entry: its parser, its default and its purpose."""

    read: Callable[[str], Any]
    default: str | None
    """The text when none is given; `None`: derived from other settings, or absent."""
    description: str
    secret: bool = False
    show: Callable[[Any], str] = str
    """Formats its value for printing."""


def _setting(*given: Any, **more: Any) -> Any:
    """Return a setting's field, hidden from `repr` if its value may hold a secret or password."""
    entry = Setting(*given, **more)
    return field(repr=entry.show is str and not entry.secret, metadata={"setting": entry})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked values; the settings have the names of the fields, in upper case."""

    port: int = _setting(read_port, "8000", "the TCP port to listen on")
    site_url: str = _setting(
        read_origin, None, "the public origin; http://127.0.0.1:$PORT when absent"
    )
    database_url: str = _setting(
        read_database, "sqlite:///var/edge.db", "where rows are kept", show=redact_database
    )
    litestream_replica: str | None = _setting(
        read_replica, None, "where Litestream keeps a continuous copy of the store", secret=True
    )
    backup_recipient: tuple[str, ...] = _setting(
        read_recipients, "", "public keys of age that backup --all encrypts for"
    )
    build_dir: Path = _setting(
        Path, "build", "the folder of builds; the edge serves `current` in it"
    )
    build_url: str | None = _setting(
        read_bucket, None, "the bucket that builds are fetched from into BUILD_DIR"
    )
    build_key: tuple[str, ...] = _setting(
        read_build_keys, "", "public keys of those who push builds; two during a rotation"
    )
    build_signing_key: str | None = _setting(
        str.strip, None, "the private key of builds, only on the machine that pushes", secret=True
    )
    content_dir: Path = _setting(Path, "content", "the folder of Markdown files")
    secret_key: str | None = _setting(
        read_secret, None, "HMAC and encryption key; generated beside a SQLite store", secret=True
    )
    leads_require_credential: bool = _setting(
        read_boolean, "false", "whether creating a lead needs a credential"
    )
    access_requests: str = _setting(
        one_of("off", "on"), "off", "whether the contact page has a form that asks for access"
    )
    analyze_fetch: str = _setting(
        one_of("off", "self", "on"),
        "self",
        "the addresses that analyze may fetch: off (none), self (this site's), on (public ones)",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        read_networks, "", "networks whose forwarding headers count, separated by commas"
    )
    rate_leads: str = _setting(
        _rate, "5/10minutes;20/day", "leads stored for one address without a credential"
    )
    rate_access_requests: str | None = _setting(
        _rate, None, "requests for access stored for one address; RATE_LEADS when absent"
    )
    rate_leads_attempts: str = _setting(
        _rate,
        "60/minute",
        "requests to create a lead, to ask for access or to claim it, for one address",
    )
    rate_analyze: str = _setting(
        _rate, "10/minute;100/day", "documents analyzed for one address or credential"
    )
    rate_authenticated: str = _setting(_rate, "600/minute", "requests for one credential")
    rate_failed_auth: str = _setting(
        _rate, "300/minute", "failed authentications answered with 401 for one address"
    )
    rate_token: str = _setting(
        _rate, "30/minute", "requests to the authorization server for one address"
    )
    rate_search: str = _setting(
        _rate,
        "300/minute",
        "searches for one address; while somebody types, each letter counts as one",
    )
    rate_desk_links: str = _setting(
        _rate,
        "3/hour;10/day",
        "links to the desk that are mailed for a browser that signed in before",
    )
    redirect_schemes: tuple[str, ...] = _setting(
        read_schemes, "cursor", "private-use schemes of programs that OAuth may lead back to"
    )
    email_hook_secret: tuple[str, ...] | None = _setting(
        read_hook_secrets,
        None,
        "secret of the mail service's webhook (bounces, complaints); two during rotation",
        secret=True,
    )
    retain_leads_days: int = _setting(read_days, "0", "days until a lead is deleted; 0 is never")
    retain_mail_log_days: int = _setting(
        read_days, "0", "days until a row of email_send_log is deleted; 0 is never"
    )
    retain_audit_days: int = _setting(
        read_days, "0", "days until an entry of the audit log is deleted; 0 is never"
    )
    retain_undo_days: int = _setting(
        read_days, "30", "days within which a change of rows can be undone; 0 is for ever"
    )
    smtp_url: str | None = _setting(
        check_relay, None, "the relay that takes mail; without one none is sent", secret=True
    )
    mail_from: str | None = _setting(
        check_mailbox, None, "the sender of mail; OWNER_EMAIL when absent"
    )
    owner_email: str | None = _setting(
        check_mailbox, None, "gets a mail for each lead and access request"
    )
    acknowledge_leads: bool = _setting(
        read_boolean, "false", "whether the sender of a lead gets an acknowledgement"
    )
    acknowledgements_per_hour: int = _setting(
        number_between(0, 999_999, "must be a number from 0 to 999999"),
        "60",
        "the most acknowledgements that are sent in an hour",
    )
    mail_templates: Path | None = _setting(
        Path, None, "a folder of templates that replace those of messages; checked at the start"
    )
    mail_dispatcher: str = _setting(
        one_of("on", "off"), "on", "whether serve sends mail; off: python -m edge_api mail does"
    )
    mailbox_url: MailServer | None = _setting(
        parse_imap, None, "the mailbox that is read each minute for replies to leads", secret=True
    )
    mail_authserv_id: str | None = _setting(
        str.strip, None, "the mail server whose Authentication-Results say who wrote a reply"
    )
    alert_url: str | None = _setting(
        read_https, None, "an address that alerts are posted to, beside mail", secret=True
    )
    alert_ping: str | None = _setting(
        read_https, None, "an address that is called each minute while all is well", secret=True
    )
    cdn_seconds: int = _setting(
        number_between(0, 86_400, "must be a number of seconds from 0 to 86400, a day"),
        "0",
        "seconds that a CDN may keep pages; above 300 only while it hears of changes by a webhook",
    )
    log_format: str = _setting(one_of("text", "json"), "text", "how log lines look")
    access_log: str = _setting(
        one_of("off", "combined", "json"), "off", "a line on standard output for each request"
    )
    desk: str = _setting(one_of("on", "off"), "on", "whether the owner's pages are at /desk/")
    demo: str = _setting(
        one_of("off", "on"), "off", "in .env: whether a new store is filled with made-up rows"
    )
    newsletter: str = _setting(
        one_of("off", "on"), "off", "whether readers can subscribe, and posts are mailed to them"
    )
    newsletter_from: str | None = _setting(
        check_mailbox, None, "the sender of the newsletter: an address, or a name and an address"
    )
    newsletter_postal_address: str | None = _setting(
        str.strip, None, "the postal address below each letter, which bulk mail must carry"
    )
    newsletter_delay: int = _setting(
        number_between(0, 10_080, "must be a number of minutes from 0 to 10080, a week"),
        "10",
        "minutes from a post's publication to its letters, in which they can be stopped",
    )
    newsletter_rate: int = _setting(
        number_between(1, 1000, "must be a number of letters a second from 1 to 1000"),
        "5",
        "the most letters that are sent in a second",
    )
    rate_subscribe: str = _setting(
        _rate, "5/10minutes;20/day", "subscriptions asked for from one address without a credential"
    )
    writing: str = _setting(
        one_of("off", "on"), "off", "whether posts can be written by the API, MCP and the desk"
    )
    writing_push: str | None = _setting(
        str.strip,
        None,
        "the git remote that a server pushes the journal's commits to",
        secret=True,
    )
    stats: str = _setting(one_of("on", "off"), "on", "whether views of pages are counted")
    stats_visitors: str = _setting(
        one_of("on", "off"), "on", "whether the visitors of a day are estimated"
    )
    stats_mail: str = _setting(
        one_of("on", "off"), "on", "whether the owner gets the stats by mail on Mondays"
    )
    metrics: str = _setting(one_of("off", "on"), "off", "whether /metrics is there, for Prometheus")
    metrics_socket: Path | int | None = _setting(
        read_port_or_socket,
        None,
        "a loopback port, or a Unix socket, that has /metrics without a key",
    )

    @property
    def database_path(self) -> Path | None:
        """The file of a SQLite store; `None` for PostgreSQL."""
        return sqlite_file(self.database_url)

    @property
    def is_loopback(self) -> bool:
        """Return whether the site is only reached from this machine."""
        return is_loopback(urlsplit(self.site_url).hostname or "")

    @property
    def site_host(self) -> str:
        """Return the host of SITE_URL, without a port."""
        return urlsplit(self.site_url).hostname or "localhost"


SETTINGS: Final[Mapping[str, Setting]] = {
    each.name.upper(): each.metadata["setting"] for each in fields(Settings)
}
_DEFAULT_RATES: Final = {each.default for each in SETTINGS.values() if each.read is _rate}


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address (RFC 6761, section 6.3)."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(
    environment: Mapping[str, str], dotenv: Path | None = Path(".env"), *, lenient: bool = False
) -> Settings:
    """Return the settings, all checked. Raises SettingsError with every error at once.

    `lenient` gives the default for what is wrong, for who has to say so by those that are right.
    """
    given = read_variables(dotenv, environment, lenient=lenient) if dotenv else environment
    values: dict[str, Any] = {}
    errors: list[str] = []
    for name, setting in SETTINGS.items():
        text = given.get(name) or setting.default
        try:
            values[name.lower()] = None if text is None else setting.read(text)
        except ValueError as error:
            errors.append(f"{name}: {error}")
            if lenient:
                values[name.lower()] = setting.default and setting.read(setting.default)
    errors.extend(_contradictions(values))
    if errors and not lenient:
        raise SettingsError([*errors, *(_find_misspelt(dotenv) if dotenv else ())])
    values["site_url"] = values["site_url"] or f"http://127.0.0.1:{values['port']}"
    values["mail_from"] = values["mail_from"] or values["owner_email"]
    values["rate_access_requests"] = values["rate_access_requests"] or values["rate_leads"]
    return Settings(**values)


def _contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each pair of settings that contradict each other, if both are valid."""
    senders = ("mail_from", "owner_email")
    if values.get("smtp_url") and all(values.get(name, "faulty") is None for name in senders):
        yield "SMTP_URL: needs MAIL_FROM or OWNER_EMAIL as the sender"
    if values.get("build_url") and not values.get("build_key", "faulty"):
        yield "BUILD_URL: needs BUILD_KEY, which `push --new-key` makes where builds are pushed"
    if values.get("build_url") and values.get("writing") == "on":
        yield (
            "WRITING: on needs the content, which is not here where BUILD_URL is set: leave it "
            "off, and send those who write to the machine that builds"
        )
    if values.get("demo") == "on" and not (values.get("smtp_url") or "").startswith("maildir:"):
        yield "DEMO: on needs SMTP_URL=maildir:var/mail, so that no mail leaves this machine"
    if values.get("metrics_socket") and values.get("metrics") == "off":
        yield "METRICS_SOCKET: needs METRICS=on"
    if values.get("newsletter") == "on":
        yield from _missing_for_newsletter(values)
    are_valid = values.keys() >= {"database_url", "secret_key"}
    if are_valid and sqlite_file(values["database_url"]) is None and not values["secret_key"]:
        yield (
            "SECRET_KEY: needed with PostgreSQL, the same for all edges on one store; "
            'python -c "import secrets; print(secrets.token_hex(32))" makes one'
        )


def _missing_for_newsletter(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each setting without which the newsletter cannot be."""
    purposes = {
        "smtp_url": "the relay that takes it",
        "newsletter_from": "its sender",
        "newsletter_postal_address": "the postal address that bulk mail must carry",
        "owner_email": "the owner, who gets the test of the first one",
    }
    for name, purpose in purposes.items():
        if not values.get(name, "faulty"):
            yield f"NEWSLETTER: on needs {name.upper()}, {purpose}"
    parts = urlsplit(values.get("site_url") or "http://127.0.0.1")
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        yield "NEWSLETTER: on needs SITE_URL with https, for links that nobody on the way reads"


def find_mistakes(settings: Settings, dotenv: Path = Path(".env")) -> Iterator[str]:
    """Yield a sentence for each valid value that is probably a mistake."""
    yield from _find_misspelt(dotenv)
    is_mailed = settings.smtp_url and settings.owner_email
    if settings.site_url.startswith("https:") and not settings.is_loopback and not is_mailed:
        yield "SMTP_URL and OWNER_EMAIL: without both nobody is notified of leads; set them"
    networks = [ip_network(name, strict=False) for name in settings.trusted_proxies]
    # Two halves of all addresses trust everybody too; the two families cannot be collapsed at once.
    collapsed: list[IPv4Network | IPv6Network] = [
        *collapse_addresses(each for each in networks if isinstance(each, IPv4Network)),
        *collapse_addresses(each for each in networks if isinstance(each, IPv6Network)),
    ]
    if any(each.prefixlen == 0 for each in collapsed):
        yield (
            "TRUSTED_PROXIES trusts everybody, so that anybody can make up the address that limits "
            "count by: name the addresses of your proxies, such as 127.0.0.1"
        )
    if settings.build_url and settings.build_signing_key:
        yield "BUILD_SIGNING_KEY: keep it where builds are pushed alone; edges need BUILD_KEY"
    if settings.metrics_socket == settings.port:
        yield f"METRICS_SOCKET: {settings.port} is the port of PORT too; choose another one"
    off = [
        name
        for name, setting in SETTINGS.items()
        if setting.read is _rate and getattr(settings, name.lower()) == "0"
    ]
    if off and not settings.is_loopback:
        yield f"{', '.join(off)}: 0 is no limit, and everybody can reach SITE_URL: set a limit"


def _find_misspelt(dotenv: Path) -> Iterator[str]:
    """Yield a sentence for each name in `.env` that no setting has, or that has no value."""
    for name, value in dotenv_values(dotenv).items():
        if name not in SETTINGS and not name.startswith(LITESTREAM_PREFIXES):
            fixes = [f"did you mean {near}?" for near in get_close_matches(name, SETTINGS, 1)]
            yield f"{dotenv}: {name} is no setting; {(*fixes, 'remove it, or correct its name')[0]}"
        elif value is None:
            yield f"{dotenv}: {name} has no value; write it like {name}=value"


def find_missing_folders(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each required folder that is missing."""
    if settings.build_url:
        return
    if not settings.content_dir.is_dir():
        yield f"CONTENT_DIR: there is no folder {settings.content_dir}; make it or set another"
    if not (settings.build_dir / "current").exists():
        yield f"BUILD_DIR: {settings.build_dir} holds no build; run {BUILD} build"


def show_value(value: object, setting: Setting) -> str:
    """Return the value of a setting as people may read it: no secret, and no password."""
    if value is None:
        return "(not set)"
    if setting.secret:
        return "(hidden)"
    return ", ".join(value) if isinstance(value, tuple) else setting.show(value)
