"""`doctor`: report what is wrong with this installation."""

import asyncio
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLCertVerificationError
from typing import Final
from urllib.parse import urlsplit

from click import Option

from edge_api.access.service import count_pending
from edge_api.alerts import Alerts, is_alerted_by_edge
from edge_api.app import Assembly, assemble
from edge_api.auth.actor import system_clock
from edge_api.auth.keys import Keys, key_state
from edge_api.backup.files import check_dotenv_permissions, is_exposed, secret_key_path
from edge_api.backup.replica import replica_errors
from edge_api.backup.verify import PARTS, read_result, report_verifications
from edge_api.cli import printable
from edge_api.cli.serve import (
    DEVELOPMENT_KEY_NAME,
    clock_error,
    development_key_path,
    run_systemd_command,
)
from edge_api.db.errors import StoreRefusal
from edge_api.db.query import Filter, Read
from edge_api.db.tables import AUDIT_LOG
from edge_api.db.types import format_instant
from edge_api.health import Health, MachineMonitor, check_units, make_context, name_unit
from edge_api.journal.builds import NO_BUILD, BuildManager
from edge_api.journal.remote_builds import RemoteBuilds
from edge_api.mail.sample_message import open_templates
from edge_api.mail.transports import check_relay
from edge_api.newsletter.checks import check_sender, find_former_hosts
from edge_api.newsletter.mailings import Mailings
from edge_api.operation.model import Service
from edge_api.schema.commands import JSON, Arguments
from edge_api.schema.environment import BUILD, EDGE, VERSION, SettingsError
from edge_api.schema.heartbeat import find_edge
from edge_api.schema.index import CURRENT_LINK
from edge_api.schema.installed_code import PACKAGE, InstalledCode
from edge_api.schema.page_templates import read_notes
from edge_api.schema.pushed_builds import BucketError, answers_anonymously
from edge_api.schema.writing import Spool, locate_var
from edge_api.settings import Settings, find_missing_folders, find_mistakes, read_settings

CHECKED: Final = (
    "settings and .env",
    "private files",
    "store",
    "secret key",
    "build",
    "bucket of builds",
    "watcher",
    "installed code",
    "mail and its relay",
    "newsletter",
    "webhooks",
    "keys",
    "requests for access",
    "replica and backups",
    "public address and certificate",
    "room on the disk",
    "units of systemd",
    "clock",
)
"""The names of all checks; a check of something that is not installed reports nothing."""
_STORE_CHECKS: Final = (
    "build",
    "bucket of builds",
    "watcher",
    "mail and its relay",
    "webhooks",
    "keys",
    "requests for access",
    "clock",
)
"""The entries of `CHECKED` that are skipped where the store cannot be opened."""
_CLOCK_PREFIX: Final = "the clock "  # the first words of each error about the clock
_CLOCK_FIX: Final = "run timedatectl set-ntp true"
_MAX_CLOCK_ERROR: Final = timedelta(hours=1)
_TIMEOUT_SECONDS: Final = 10.0


PARAMS: Final = (
    Option(
        ["--deep"],
        is_flag=True,
        help="restore the replica into another file, and read the newest backup whole",
    ),
    Option(
        ["--alert"],
        is_flag=True,
        help="alert OWNER_EMAIL and ALERT_URL to faults that the last run also found, "
        "and to those that are over",
    ),
    JSON,
)


def run(arguments: Arguments, settings: Settings) -> int:
    """Print a sentence for each error. Returns 1 if there is one."""
    try:
        templates, found = open_templates(settings), [*find_mistakes(settings)]
    except SettingsError as error:  # check the rest without these templates
        settings = replace(settings, mail_templates=None)
        templates, found = open_templates(settings), [*error.errors, *find_mistakes(settings)]
    began = system_clock()
    logging.getLogger("edge_api").addHandler(logging.NullHandler())  # its errors are printed below
    # A serving edge alerts of health, backups and site warnings itself; --alert of the rest.
    health_errors, service_errors, service_notes = asyncio.run(_check_service(settings))
    backup_errors, backup_notes = report_verifications(settings, deep=arguments.deep)
    sender_notes: list[str] = []
    site_warnings, site_errors = _check_site(settings)
    machine = MachineMonitor(settings)
    machine.refresh()
    machine_errors = machine.find_errors().values()
    # A full disk may be why the edge is down.
    causes = machine_errors if site_errors and not is_alerted_by_edge(settings) else ()
    checks = {
        "mistakes": found,
        **{name: [error] for name, error in _check_files(settings)},
        **service_errors,
        "sender": [*check_sender(settings, sender_notes)],
        "replication": [*replica_errors(settings)],
        "address": [*site_errors, *causes],
        **_check_machine(settings),
    }
    if arguments.alert:
        # They stay as they were where the store cannot be opened.
        unknown = {"store", "keys", "relay", "newsletter", "audit log", "bucket", "standby"}
        _alert(settings, began, checks, unknown - checks.keys())
    checks["others"] = [*health_errors, *backup_errors, *site_warnings, *machine_errors]
    # Readiness names `doctor`, whose own list has them.
    found = [e.removesuffix(": run doctor to list them") for each in checks.values() for e in each]
    # List a wrong clock first, since it can cause the other errors.
    errors = dict.fromkeys(sorted(found, key=lambda each: not each.startswith(_CLOCK_PREFIX)))
    if any(error.startswith("BUILD_DIR: ") for error in errors):
        errors.pop(NO_BUILD, None)
    has_one_way = settings.smtp_url and settings.owner_email and not settings.alert_url
    notes = [
        *(service_notes or ()),
        *sender_notes,
        *backup_notes,
        *(
            ["without ALERT_URL nobody hears of it when the relay of mail is broken"]
            if has_one_way and not settings.is_loopback
            else []
        ),
        *read_notes(settings.build_dir / CURRENT_LINK)["unknown"],
        *(f"MAIL_TEMPLATES: {file}:{line}: {about}" for file, line, about in templates.unknown),
    ]
    checked = [each for each in CHECKED if service_notes is not None or each not in _STORE_CHECKS]
    return print_report([*errors], notes, checked, as_json=arguments.json)


def refuse(arguments: Arguments, errors: Sequence[str]) -> int:
    """Print errors of the settings; those that are valid alert the owner. Returns 1."""
    if arguments.alert:
        with suppress(SettingsError):  # `.env` cannot be read
            settings = read_settings(os.environ, lenient=True)
            _alert(settings, system_clock(), {"settings": errors}, None)
    return print_report(errors, (), CHECKED[:1], as_json=arguments.json)


def _alert(
    settings: Settings,
    began: datetime,
    checks: Mapping[str, Sequence[str]],
    unknown: AbstractSet[str] | None,
) -> None:
    """Send the owner what was found in the run that `began` then, be it a slow one."""
    with closing(Alerts(settings, lambda: began, "doctor")) as alerts:
        asyncio.run(
            alerts.report(
                {name: "\n  ".join(errors) for name, errors in checks.items() if errors}, unknown
            )
        )


def print_report(
    errors: Sequence[str], notes: Sequence[str], checked: Sequence[str], *, as_json: bool
) -> int:
    """Print the errors, the notes and the names of the checks. Returns 1 if there is an error."""
    if as_json:
        members = {
            "status": "fail" if errors else "pass",
            "version": VERSION,
            "errors": errors,
            "notes": notes,
            "checked": checked,
        }
        print(json.dumps(members, indent=2, ensure_ascii=False))
    else:
        lines = [f"- {error}" for error in errors] or ["nothing is wrong"]
        print(*lines, *notes, f"looked at: {', '.join(checked)}", sep="\n")
    return 1 if errors else 0


def _check_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the errors that can be found without opening the store, each with a name."""
    yield from ((each.partition("_")[0].lower(), each) for each in find_missing_folders(settings))
    private = [development_key_path(settings)]
    if settings.database_path:
        private = [settings.database_path, secret_key_path(settings.database_path), *private]
    for path in filter(is_exposed, private):
        yield path.name, f"{path} can be read by others; run chmod 600 {path}"
    with suppress(OSError):  # `_check_service` reports an unreadable store
        edge = find_edge(settings.database_path.resolve()) if settings.database_path else None
        if edge and edge[1:] != [InstalledCode(PACKAGE).digest.hex()]:
            yield "code", "the installed code has changed since the edge started: restart it"
    spool = Spool(locate_var(settings.database_url, settings.build_dir))
    if settings.writing == "on" and not spool.is_watched():
        yield (
            "writing",
            (
                f"WRITING=on, but no watcher that can write {settings.content_dir} answers: "
                f"see its log; systemctl restart {name_unit()}-publish, or without systemd "
                f"{BUILD} watch"
            ),
        )
    if error := check_dotenv_permissions():
        yield ".env", error
    if not settings.is_loopback and settings.site_url.startswith("http://"):
        yield "https", "SITE_URL is http: put a proxy that speaks https before the service"


async def _check_service(
    settings: Settings,
) -> tuple[list[str], Mapping[str, list[str]], list[str] | None]:
    """Assemble the service without serving; return errors of readiness, others, and notes.

    The others are by check. The notes are None where the store cannot be opened.
    """
    try:
        async with assemble(settings, create=False) as assembly:
            checks = (await assembly.service[Health].report())["checks"]
            failure, held = assembly.publishing.failure, assembly.publishing.held
            build_error = assembly.service[BuildManager].error
            keys = [] if settings.is_loopback else await _check_development_keys(assembly)
            unreviewed = await _check_unreviewed_keys(assembly)
            count = await count_pending(assembly.service.store, assembly.service.clock())
            wait = (
                "1 request for access waits" if count == 1 else f"{count} requests for access wait"
            )
            notes = [f"{wait} for a decision; run {EDGE} requests list"] if count else []
            is_kept = settings.smtp_url and settings.smtp_url.startswith("maildir:")
            if is_kept and not settings.is_loopback:
                notes.append(
                    f"SMTP_URL is {settings.smtp_url}: mail is stored there, and nobody gets it"
                )
            if press := len(await assembly.service[Mailings].read_resting()):
                notes += [f"posts to be mailed or skipped: {press}; see {EDGE} newsletter status"]
            relay = await check_relay(settings.smtp_url) if settings.smtp_url else []
            clock = await _check_clock(assembly)
            service = assembly.service
            remote = await _check_bucket(service, settings)
            former = await find_former_hosts(settings, service.store, service.clock())
            weak = ""
            if settings.database_path is None:
                from edge_api.db.postgres import engine as postgres  # noqa: PLC0415

                weak = await postgres.find_weak_replication(settings.database_url)
    except StoreRefusal as refusal:
        refused = [str(refusal)]
        return (
            (refused, {}, None) if is_alerted_by_edge(settings) else ([], {"store": refused}, None)
        )
    readiness_errors = [check["error"] for check in checks.values() if "error" in check]
    # Readiness is public, so its errors name no command; add the command that fixes each.
    for words, whole in (
        ("the build was made for another SITE_URL", build_error),
        (
            "minute: start it again",
            f"minute: systemctl restart {name_unit()}-publish; without systemd {BUILD} publish",
        ),
    ):
        readiness_errors = [each.replace(words, whole) for each in readiness_errors]
    builds = [f"the watcher's last build failed: {failure}"] if failure else []
    errors = {
        "store": [],
        "keys": [*keys, *unreviewed],
        "relay": relay,
        "newsletter": former,
        "audit log": clock,
        "bucket": remote,
        "standby": [*filter(None, [weak])],
    }
    return [*readiness_errors, *builds, *held], errors, notes


async def _check_bucket(service: Service, settings: Settings) -> list[str]:
    """Return errors of the bucket of builds; no build is fetched."""
    if not settings.build_url:
        return []
    errors = [*filter(None, [service[RemoteBuilds].find_unread()])]
    try:
        await service[RemoteBuilds].look()
    except BucketError as error:
        errors.append(f"BUILD_URL: {error.detail}")
    if await asyncio.to_thread(answers_anonymously, settings.build_url):
        errors.append(
            "BUILD_URL: everybody can read the bucket, with what builds keep from readers: take "
            "public access away in its settings"
        )
    return errors


async def _check_clock(assembly: Assembly) -> list[str]:
    """Return an error if the audit log has a change later than now: the clock is behind."""
    latest = format_instant(assembly.service.clock() + _MAX_CLOCK_ERROR)
    later_change = Read(AUDIT_LOG, ("at",), (Filter("at", "gt", latest),), limit=1)
    (found,) = await assembly.service.store.run(later_change)
    return [
        f"{_CLOCK_PREFIX}is behind {row['at']}, when a change was made: {_CLOCK_FIX}"
        for row in found.rows
    ]


def _check_site(settings: Settings) -> tuple[list[str], list[str]]:
    """Request readiness from the public address; return what it warns of.

    The second list has errors that the edge cannot see.

    A refused connection to an address of this machine is no error: the edge may be stopped.
    """
    origin = urlsplit(settings.site_url)
    connection = HTTPConnection(origin.netloc, timeout=_TIMEOUT_SECONDS)
    if origin.scheme == "https":
        connection = HTTPSConnection(
            origin.netloc, timeout=_TIMEOUT_SECONDS, context=make_context()
        )
    with closing(connection):
        try:
            connection.request("GET", "/api/public/v1/readiness")
            response = connection.getresponse()
            if response.headers.get_content_type() != "application/json":
                raise HTTPException(f"the status is {response.status}")  # noqa: TRY301
            checks = json.loads(response.read())["checks"].items()
            complaints = {name: str(each["error"]) for name, each in checks if "error" in each}
        except (
            OSError,
            HTTPException,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            return [], [*_explain_failed_request(settings, error)]
    # `report_verifications` describes the errors of PARTS in more detail.
    is_near = settings.is_loopback
    warnings = [each for name, each in complaints.items() if not is_near and name not in PARTS]
    with suppress(TypeError, ValueError):  # the header is missing, or is no date
        difference = abs(parsedate_to_datetime(response.headers["Date"]) - system_clock())
        if difference > _MAX_CLOCK_ERROR:
            hours = difference // timedelta(hours=1)
            where = f"{_CLOCK_PREFIX}here and that of {settings.site_url}"
            return warnings, [f"{where} differ by {hours} h: {_CLOCK_FIX}"]
    return warnings, []


def _explain_failed_request(settings: Settings, error: Exception) -> Iterator[str]:
    """Yield an error for the request, unless an address of this machine refuses connections."""
    if isinstance(error, SSLCertVerificationError):
        yield (
            f"the certificate of {settings.site_url} is refused by those who check it "
            f"({error.verify_message}): install one for its name, with its chain, as certbot does"
        )
    elif not (settings.is_loopback and isinstance(error, ConnectionRefusedError)):
        has_message = isinstance(error, OSError | HTTPException | ValueError)
        yield (
            f"{settings.site_url} is not answered by an edge "
            f"({error if has_message else 'its readiness has no checks'}): "
        ) + (
            "end what listens there (ss -ltnp names it), or set another PORT"
            if settings.is_loopback
            else "check that DNS leads here, that the proxy runs, and that the edge does"
        )


def _check_machine(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Return errors of a missing backup, the units of systemd, and the clock."""
    store = settings.database_path
    key = secret_key_path(store) if store else None
    # A store that is less than two hours old may have no backup yet.
    is_new = key and key.exists() and time.time() - key.stat().st_mtime < 2 * 3600
    needs_backup = store and not settings.is_loopback and not settings.litestream_replica
    is_missed = needs_backup and not is_new and not read_result(settings, "backup")
    parts = ".service", "-publish.service", "-backup.timer", "-doctor.timer"
    units = [
        f"{name_unit()}{each}"
        for each in parts
        if not (settings.build_url and each == "-publish.service")
    ]
    shown = run_systemd_command("systemctl", "show", "-p", "Id,LoadState,ActiveState", *units)
    return {
        "backup": [f"there is no backup: let a timer run {EDGE} backup"] if is_missed else [],
        **{each.partition(" is ")[0]: [each] for each in check_units(shown)},
        "clock": [*filter(None, [clock_error()])],
    }


async def _check_unreviewed_keys(assembly: Assembly) -> list[str]:
    """Return a warning about unreviewed keys that never expire, with the commands to end them."""
    keys, _, warning = await Keys(assembly.service.store, assembly.service.clock).find_unreviewed()
    commands = [
        f"{EDGE} keys revoke {row['id']}  # {printable(row['name'])}; or keys expire {row['id']}"
        for row in keys
    ]
    end = "revoke them; keys expire ends one in 90 days, keys expire ID --no-expiry lets it stay"
    return ["\n  ".join((f"{printable(warning)}. End them? {end}", *commands))] if keys else []


async def _check_development_keys(assembly: Assembly) -> list[str]:
    """Return an error for each valid development key, since it has every scope."""
    service = assembly.service
    now = format_instant(service.clock())
    rows = await Keys(service.store, service.clock).all()
    return [
        f"a development key opens everything; run {EDGE} keys revoke {row['id']}"
        for row in rows
        if row["name"] == DEVELOPMENT_KEY_NAME and key_state(row, now) in ("valid", "rotated")
    ]
