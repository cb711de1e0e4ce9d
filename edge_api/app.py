"""Assembly of the service: every part is opened in order and closed in reverse."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import orjson

from edge_api.access.service import AccessRequests
from edge_api.admin.rows import Rows
from edge_api.alerts import ALERT_SECONDS, Alerts, look
from edge_api.analysis.analyst import Analyst, DocumentFetcher, WorkerPool
from edge_api.analysis.document import AI_CATALOG, API_CATALOG
from edge_api.analysis.fetch import ClientMetadataFetcher, WebDocumentFetcher
from edge_api.auth.actor import Clock, system_clock
from edge_api.auth.credentials import Authenticator
from edge_api.auth.erasure import Privacy
from edge_api.auth.rate_limits import Limiter, list_rates
from edge_api.auth.tokens import SecretBox
from edge_api.background import (
    DELETE_EXPIRED_SECONDS,
    EXCHANGE_SECONDS,
    FULL_GC_SECONDS,
    REFRESH_SECONDS,
    VERIFY_SECONDS,
    WATCHER_POLL_SECONDS,
    DailyVerification,
    GcFreeze,
    Loop,
    background_jobs,
    check_remote,
    check_secret,
    every,
    gc_freeze,
)
from edge_api.backup.files import secret_key
from edge_api.backup.replica import Replication, make_replication
from edge_api.db.query import Store
from edge_api.desk.sessions import Sessions
from edge_api.health import LOG_SECONDS, Health, HealthCheck, MachineMonitor, PublishingMonitor
from edge_api.http.dispatch import App
from edge_api.http.endpoint import Admission
from edge_api.http.logs import AccessLog
from edge_api.http.pages import EdgePages
from edge_api.http.response import Request
from edge_api.http.site import Site
from edge_api.journal.builds import NO_BUILD, NOT_FETCHED, BuildManager
from edge_api.journal.remote_builds import FETCH_SECONDS, RemoteBuilds
from edge_api.journal.search_index_files import SearchOpener, search_prefix
from edge_api.leads.service import Leads
from edge_api.mail.answers import Answers
from edge_api.mail.delivery import count_nothing
from edge_api.mail.dispatcher import make_mail_service
from edge_api.mail.incoming import POLL_SECONDS, IncomingMail, MailboxReader
from edge_api.mail.suppressions import Feedback
from edge_api.mcp.operations import Identity, ai_catalog
from edge_api.mcp.transport import McpEndpoint, MessageHandler
from edge_api.metrics import OPERATIONS as METRICS
from edge_api.metrics import Metrics
from edge_api.newsletter.mailings import Mailings
from edge_api.newsletter.sending import QUEUE_SECONDS, Letters
from edge_api.newsletter.subscribers import Subscribers
from edge_api.oauth.server import OAuthServer
from edge_api.open_store import open_rate_limits, open_store, refuse_unrestored_store
from edge_api.operation.model import API_VERSION, AnyOperation, ApiDocuments, Document, Service
from edge_api.operations import (
    DESK,
    DOCUMENTED,
    OPERATIONS,
    ROUTED,
    configure,
    make_openapi,
    offer,
)
from edge_api.schema.credentials import DEFAULT_SCOPES
from edge_api.schema.environment import VERSION
from edge_api.schema.installed_code import PACKAGE, InstalledCode
from edge_api.schema.paths import (
    CLAIM_CREDENTIAL,
    METADATA,
    RESOURCE_METADATA,
    SERVER_CARD,
    TOKEN,
    WELL_KNOWN_CARD,
)
from edge_api.settings import Settings
from edge_api.stats.counter import Stats
from edge_api.utility import CATALOG_LINK, LINKSET_TYPE, api_catalog, self_description
from edge_api.webhooks.announcer import Announcer
from edge_api.webhooks.dispatcher import WebhookDispatcher, make_sender
from edge_api.webhooks.endpoints import KEY_PURPOSE, Endpoints, check_webhooks
from edge_api.webhooks.purges import REFRESH_SECONDS as PURGE_SECONDS
from edge_api.webhooks.purges import Purges
from edge_api.writing.service import Writing

if TYPE_CHECKING:
    from edge_api.operation.reference.pages import ReferencePage


@dataclass(frozen=True, slots=True)
class Assembly:
    """The running parts, and the application that serves them."""

    service: Service
    app: App
    mcp: McpEndpoint
    publishing: PublishingMonitor


@asynccontextmanager
async def assemble(
    settings: Settings, clock: Clock = system_clock, *, exclusive: bool = False, create: bool = True
) -> AsyncIterator[Assembly]:
    """Open the store and the current build, and assemble the service around them.

    `exclusive` locks a store in a file, and dispatches mail and webhooks. Without `create` a
    missing store is refused, and one of an older schema. Raises StoreRefusal.
    """
    async with AsyncExitStack() as stack:
        store, replication = await stack.enter_async_context(
            _open_replicated_store(settings, clock, exclusive=exclusive, create=create)
        )
        builds = BuildManager(
            settings.build_dir,
            settings.site_url,
            SearchOpener(search_prefix(settings) if exclusive else None),
            no_build=NOT_FETCHED if settings.build_url else NO_BUILD,
        )
        stack.push_async_callback(builds.close)
        await builds.refresh()
        publishing = PublishingMonitor(
            settings.build_dir,
            settings.content_dir,
            clock,
            InstalledCode(PACKAGE),
            is_fetched=settings.build_url is not None,
        )
        await publishing.refresh()
        secret = secret_key(settings)
        remote = RemoteBuilds(settings, secret) if settings.build_url else None
        oauth = OAuthServer(settings, store, clock, secret, fetch=ClientMetadataFetcher())
        asked = (*DEFAULT_SCOPES, "posts:draft") if settings.writing == "on" else DEFAULT_SCOPES
        authenticator = Authenticator(store, clock, settings.site_url, oauth.token_validator, asked)
        limits = await stack.enter_async_context(open_rate_limits(settings, secret, store))
        limiter = Limiter(settings, shared=limits)
        box = SecretBox(secret, KEY_PURPOSE)
        webhooks = WebhookDispatcher(store, clock, box, make_sender(settings))
        purges = Purges(settings, store, webhooks.wake)
        letters = Letters(settings, store, clock)
        metrics = [Metrics(_list_operations(settings))] if settings.metrics == "on" else []
        mailing = make_mail_service(
            settings,
            store,
            clock,
            secret,
            letters=letters.prepare,
            count=metrics[0].count_mail if metrics else count_nothing,
        )
        mailings = Mailings(settings, store, clock, mailing.outbox)
        feedback = Feedback(store, clock, secret)
        mailbox = settings.mailbox_url and MailboxReader(
            settings.mailbox_url, IncomingMail(settings, store, clock, feedback), secret
        )
        analyst = make_analyst(settings, builds)
        stack.push_async_callback(analyst.pool.close)
        is_verified = exclusive and (settings.database_path or settings.backup_recipient)
        verification = DailyVerification(settings, replication) if is_verified else None
        health_checks: dict[str, HealthCheck] = {
            "mail": mailing.check,
            **({"mailbox": mailbox.check} if mailbox else {}),
            "newsletter": mailings.check,
            "webhooks": partial(check_webhooks, store),
            "cdn": purges.check,
            "content": publishing.content,
            "watcher": publishing.watcher,
            "code": publishing.code,
            **({"builds": partial(check_remote, remote)} if remote else {}),
            "secret_key": partial(check_secret, store, oauth.keys, box),
            **(verification.checks if verification else {}),
        }
        stats = Stats(settings, store, clock, builds, *(each.count_views for each in metrics))
        health = Health(store, builds, clock, VERSION, health_checks)
        parts = (
            health,
            MachineMonitor(settings),
            publishing,
            builds,
            oauth,
            analyst,
            *metrics,
            *([remote] if remote else []),
            mailing,
            letters,
            mailing.links,
            mailing.outbox,
            mailing.desk_links,
            Leads(store, clock, limiter, secret, (mailing.outbox, webhooks)),
            AccessRequests(store, clock, limiter, secret, mailing.outbox),
            Subscribers(store, clock, secret, mailing.outbox),
            Privacy(store, clock, secret),
            Rows(store, clock),
            Sessions(store, clock),
            feedback,
            Answers(settings, store, clock),
            Endpoints(store, clock, box, partial(make_sender, settings)),
            Writing(settings, store, clock, purges.queue),
            mailings,
            purges,
            stats,
        )
        service = Service(
            settings,
            clock,
            store,
            authenticator,
            limiter,
            make_documents(settings),
            EdgePages(builds),
            {type(part): part for part in parts},
        )
        stack.push_async_callback(authenticator.flush)
        freeze: GcFreeze = gc_freeze if exclusive else lambda **_: None
        mcp = McpEndpoint(
            Admission(service),
            partial(_load_message_handler, service, freeze),
            is_draining=lambda: health.draining,
        )
        agent_seen = asyncio.Event()
        loops: list[Loop] = [each.run for each in metrics]
        jobs: list[tuple[float, str, Loop | None]] = [
            (WATCHER_POLL_SECONDS, "checking the watcher", publishing.refresh),
            (
                VERIFY_SECONDS,
                "verifying backups",
                verification.verify_due if verification else None,
            ),
            (DELETE_EXPIRED_SECONDS, "deleting counted requests", limits.sweep if limits else None),
            (EXCHANGE_SECONDS, "counting with other edges", limiter.exchange if limits else None),
        ]
        # A command opens the service without `exclusive`: it dispatches nothing, and ends soon.
        if exclusive:
            alerts = stack.enter_context(closing(Alerts(settings, clock, "edge")))
            jobs += [
                (
                    REFRESH_SECONDS,
                    "announcing posts",
                    Announcer(store, clock, builds, mailings.announce, purges).announce,
                ),
                (QUEUE_SECONDS, "queueing the newsletter", partial(letters.queue, mailings)),
                (FULL_GC_SECONDS, "collecting garbage", partial(asyncio.to_thread, gc_freeze)),
                (PURGE_SECONDS, "looking whether purges work", purges.refresh),
                (LOG_SECONDS, "logging checks", health.log_changes),
                (LOG_SECONDS, "mailing the stats", partial(mailing.outbox.queue_week, store)),
                (
                    ALERT_SECONDS,
                    "alerting the owner",
                    partial(look, alerts, health, publishing, service[MachineMonitor]),
                ),
                (FETCH_SECONDS, "fetching builds", remote.refresh if remote else None),
                (POLL_SECONDS, "reading the mailbox", mailbox.read if mailbox else None),
            ]
            loops += [webhooks.run, partial(_warm, agent_seen, mcp, analyst.pool)]
            if settings.mail_dispatcher == "on":
                loops.append(mailing.dispatcher.run)
        loops += [partial(every, seconds, name, job) for seconds, name, job in jobs if job]
        await stack.enter_async_context(background_jobs(service, loops, freeze))
        app = App(
            service,
            _list_operations(settings),
            Site(service).answer,
            {"mcp": mcp.answer},
            [
                *metrics,
                *([stats] if stats.is_on else []),
                *([] if settings.access_log == "off" else [AccessLog(settings.access_log)]),
                partial(_watch_for_agents, agent_seen),
            ],
        )
        freeze()
        yield Assembly(service, app, mcp, publishing)


def _list_operations(settings: Settings) -> tuple[AnyOperation, ...]:
    """Return all operations that are routed with these settings."""
    return (
        *configure(ROUTED, settings),
        *(METRICS if settings.metrics == "on" else ()),
        *(DESK if settings.desk == "on" else ()),
    )


@asynccontextmanager
async def _open_replicated_store(
    settings: Settings, clock: Clock, *, exclusive: bool, create: bool
) -> AsyncIterator[tuple[Store, Replication | None]]:
    """Open the store, and start its replication if it is exclusive. Raises StoreRefusal."""
    async with AsyncExitStack() as stack:
        replication = make_replication(settings) if exclusive else None
        if replication:  # closed after the store, so that it copies the last commits
            stack.push_async_callback(replication.close)
        await asyncio.to_thread(refuse_unrestored_store, settings)
        store = await open_store(
            settings.database_url,
            clock,
            exclusive=exclusive,
            create=create,
            migrates=create,
            replicated=replication is not None,
        )
        stack.push_async_callback(store.close)
        if replication:
            await asyncio.to_thread(replication.record_address)
            replication.start()
        yield store, replication


_log = logging.getLogger(__name__)

_SIGNS_OF_AGENTS: Final = (
    "/auth.md",
    SERVER_CARD,
    WELL_KNOWN_CARD,
    AI_CATALOG,
    METADATA,
    RESOURCE_METADATA,
    TOKEN,
    CLAIM_CREDENTIAL,
)
"""Prefixes of the paths that only an agent requests before its first call."""


def _watch_for_agents(seen: asyncio.Event, request: Request, *_: object) -> None:
    if request.path.startswith(_SIGNS_OF_AGENTS):
        seen.set()


async def _warm(seen: asyncio.Event, mcp: McpEndpoint, workers: WorkerPool) -> None:
    """Load the MCP SDK and start a worker once an agent was seen: its first calls would wait."""
    await seen.wait()
    try:
        await mcp.prepare()
        await workers.warm()
    except Exception:  # noqa: BLE001  nobody awaits this task, so it logs the error
        _log.exception("what agents need cannot be loaded; their first calls try it again")


def _load_message_handler(service: Service, freeze: GcFreeze) -> MessageHandler:
    """Load the MCP SDK, and return the message handler with our server."""
    offered = offer(OPERATIONS, service.settings)
    find_server = import_module("edge_api.mcp.server").make_server(service, offered)
    answer_message = import_module("edge_api.mcp.exchange").answer_message
    freeze()
    return partial(answer_message, find_server)


def make_documents(settings: Settings) -> ApiDocuments:
    """Return the API documents; the OpenAPI document is cached for the newest slug."""
    operations, documented = (
        configure(offer(each, settings), settings) for each in (OPERATIONS, DOCUMENTED)
    )

    def openapi_of(slug: str | None) -> dict[str, Any]:
        return make_openapi(documented, settings, {"slug": slug} if slug else {})

    @lru_cache(maxsize=1)
    def openapi(slug: str | None) -> Document:
        return Document(orjson.dumps(openapi_of(slug)))

    def reference(slug: str | None) -> "tuple[ReferencePage, ...]":
        from edge_api.operation.reference.pages import make_pages  # noqa: PLC0415  slow to import

        return make_pages(operations, openapi_of(slug), settings.site_url, list_rates(settings))

    return ApiDocuments(
        description=Document(orjson.dumps(self_description(operations, settings, API_VERSION))),
        api_catalog=Document(
            orjson.dumps(api_catalog(settings)), LINKSET_TYPE, headers=(("Link", CATALOG_LINK),)
        ),
        openapi=openapi,
        reference=reference,
    )


def make_analyst(settings: Settings, builds: BuildManager) -> Analyst:
    """Return the analyst, whose pool its caller closes."""
    if settings.analyze_fetch == "off":
        return Analyst(WorkerPool(), builds, None)
    documents = {
        API_CATALOG: orjson.dumps(api_catalog(settings)).decode(),
        AI_CATALOG: ai_catalog(Identity(settings.site_url)).body.decode(),
    }
    agent = f"fore-edge/{VERSION} (+{settings.site_url}/)"
    elsewhere = WebDocumentFetcher(agent) if settings.analyze_fetch == "on" else None
    return Analyst(WorkerPool(), builds, DocumentFetcher(builds, documents, elsewhere))
