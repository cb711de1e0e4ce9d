"""`/metrics` in Prometheus' text format: everything that the service measures.

With `serve --workers` the workers share a folder of counters (prometheus_client's multiprocess
mode). The library is imported only with METRICS=on.
"""

import asyncio
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from ssl import cert_time_to_seconds
from time import perf_counter
from typing import Any, Final, Literal, NoReturn

import psutil

from edge_api.backup.verify import is_only_copy, read_result
from edge_api.db.internal_tables import EMAIL_OUTBOX, WEBHOOK_DELIVERIES
from edge_api.db.problems import Problem
from edge_api.db.query import Order, Read, Store, count_query
from edge_api.db.tables import LEADS
from edge_api.health import SEVERITY, Health, MachineMonitor, find_folders
from edge_api.http.dispatch import App
from edge_api.http.response import AnyResponse, Request
from edge_api.journal.builds import BuildManager
from edge_api.mail.dispatcher import OWN_GIVEN_UP
from edge_api.operation.model import (
    AnyOperation,
    Operation,
    OperationResult,
    Service,
    SuccessResponse,
)
from edge_api.outbox import GIVEN_UP, WAITING
from edge_api.schema.environment import VERSION
from edge_api.schema.paths import METRICS
from edge_api.stats.reading import KINDS

MULTIPROC_DIR_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the workers' folder; set before prometheus_client is imported."""
_TICK_SECONDS: Final = 0.5
_OUTBOXES: Final = {
    "mail": (EMAIL_OUTBOX, OWN_GIVEN_UP),
    "webhooks": (WEBHOOK_DELIVERIES, (GIVEN_UP,)),
}

Gauge = tuple[str, str, Mapping[str, str], float]
"""A gauge: its name, description, labels and value."""


def mark_worker_dead(pid: int) -> None:
    """Remove a worker that has ended from the gauges of live workers."""
    if os.environ.get(MULTIPROC_DIR_VARIABLE):
        from prometheus_client import multiprocess  # noqa: PLC0415

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


def make_restart_counter() -> Callable[[], None]:
    """Return a function that counts ended workers, in the counter folder that workers share."""
    if not os.environ.get(MULTIPROC_DIR_VARIABLE):
        return lambda: None
    import prometheus_client as prometheus  # noqa: PLC0415

    return prometheus.Counter(
        "edge_worker_restarts",
        "Workers that ended, and were replaced.",
        registry=prometheus.CollectorRegistry(),
    ).inc


class Metrics:
    """Observes all requests and counts them, measures the process, and renders the metrics."""

    def __init__(self, operations: Sequence[AnyOperation] = ()) -> None:
        """Count requests of `operations` from 0 on: no alert sees a series that begins at 1."""
        import prometheus_client as prometheus  # noqa: PLC0415

        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._library = prometheus
        registry = prometheus.CollectorRegistry()
        self._registry: Any = registry
        self._requests = prometheus.Counter(
            "edge_requests", "Requests.", ("operation", "status"), registry=registry
        )
        self._limited = prometheus.Counter(
            "edge_limited_requests",
            "Requests over a rate limit.",
            ("operation",),
            registry=registry,
        )
        self._seconds = prometheus.Histogram(
            "edge_request_seconds",
            "Seconds until a response was made.",
            ("operation",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
            registry=registry,
        )
        self._views = prometheus.Counter(
            "edge_page_views",
            "Views of pages, by the kind of reader.",
            ("kind",),
            registry=registry,
        )
        self._lag = prometheus.Gauge(
            "edge_event_loop_lag_seconds",
            "Delay of the event loop, the longest of the last ticks.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._memory = prometheus.Gauge(
            "edge_resident_memory_bytes",
            "Resident memory of a process.",
            registry=registry,
            multiprocess_mode="liveall",
        )
        self._files = prometheus.Gauge(
            "edge_open_files",
            "Open files and connections of a process.",
            registry=registry,
            multiprocess_mode="liveall",
        )
        self._processor = prometheus.Counter(
            "edge_cpu_seconds", "Processor time used.", registry=registry
        )
        self._mail = prometheus.Counter(
            "edge_mail", "Attempts to hand mail to the relay.", ("outcome",), registry=registry
        )
        for outcome in ("sent", "failed"):
            self._mail.labels(outcome)
        for kind in KINDS:
            self._views.labels(kind)
        for name in ("site", *(each.name for each in operations)):
            self._limited.labels(name)
            self._seconds.labels(name)
            for status in range(2, 6):
                self._requests.labels(name, f"{status}xx")

    def __call__(
        self, _request: Request, operation: str, response: AnyResponse, seconds: float
    ) -> None:
        """Count one request."""
        self._requests.labels(operation, f"{response.status // 100}xx").inc()
        self._seconds.labels(operation).observe(seconds)
        if response.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._limited.labels(operation).inc()

    def count_views(self, kind: str, count: int) -> None:
        """Count views of pages that the stats have named."""
        self._views.labels(kind).inc(count)

    def count_mail(self, outcome: Literal["sent", "failed"]) -> None:
        """Count one attempt to send a message."""
        self._mail.labels(outcome).inc()

    async def run(self) -> None:
        """Measure the event loop and the process until cancelled."""
        process, recent, counted = psutil.Process(), [0.0] * 20, 0.0
        while True:
            self._memory.set(process.memory_info().rss)
            self._files.set(process.num_fds())
            used = sum(process.cpu_times()[:2])
            self._processor.inc(max(used - counted, 0.0))
            counted = used
            began = perf_counter()
            await asyncio.sleep(_TICK_SECONDS)
            recent = [*recent[1:], max(perf_counter() - began - _TICK_SECONDS, 0.0)]
            self._lag.set(max(recent))

    async def answer(self, service: Service) -> OperationResult:
        """Return the metrics in Prometheus' text format."""
        registry = self._registry
        if os.environ.get(MULTIPROC_DIR_VARIABLE):
            from prometheus_client import multiprocess  # noqa: PLC0415

            registry = self._library.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        text: bytes = self._library.generate_latest(registry)
        gauges = [
            *await _store_gauges(service.store, service.clock()),
            *_build_and_backup_gauges(service),
            *await asyncio.to_thread(_machine_gauges, service),
        ]
        about = "Checks of readiness: 0 passes, 1 warns, 2 fails."
        checks = {name: {"status": "pass"} for name in service[Health].extra_checks}
        for name, check in {**checks, **(await service[Health].report())["checks"]}.items():
            severity = float(SEVERITY.index(check["status"]))
            gauges.append(("edge_check", about, {"check": name}, severity))
        text += _format_gauges(gauges)
        return OperationResult(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _store_gauges(store: Store, now: datetime) -> list[Gauge]:
    oldest = (Order("created_at"),)
    reads = [
        read
        for table, given_up in _OUTBOXES.values()
        for read in (
            Read(table, ("created_at",), (WAITING,), oldest, 1, with_total=True),
            count_query(table, *given_up),
        )
    ]
    try:
        leads, *found = await store.run(count_query(LEADS), *reads)
    except Problem:
        return []  # the other metrics can still be read
    gauges: list[Gauge] = [("edge_leads", "Leads in the store.", {}, float(leads.total or 0))]
    for index, name in enumerate(_OUTBOXES):
        waiting, dead = found[2 * index : 2 * index + 2]
        labels = {"outbox": name}
        age = _age(waiting.rows[0]["created_at"], now) if waiting.rows else 0.0
        gauges += [
            ("edge_outbox_waiting", "Messages that wait.", labels, float(waiting.total or 0)),
            ("edge_outbox_age_seconds", "Age of the oldest that waits.", labels, age),
            ("edge_outbox_dead", "Dead letters.", labels, float(dead.total or 0)),
        ]
    return gauges


def _build_and_backup_gauges(service: Service) -> Iterator[Gauge]:
    build, now = service[BuildManager].current, service.clock()
    if build is not None:
        yield "edge_posts", "Posts of the build that is served.", {}, float(build.head.count)
        age = (now - build.head.built_for).total_seconds()
        yield "edge_build_age_seconds", "Age of the build that is served.", {}, age
    replica = read_result(service.settings, "replica")
    if replica is not None:
        age = _age(replica.at, now)
        yield "edge_replica_verified_age_seconds", "Since the replica was verified.", {}, age
    for part in ("backup", "archive"):
        made = read_result(service.settings, part)
        count = float(made.count if made else 0)
        yield f"edge_{part}s_total", f"{part.title()}s that were made.", {}, count
        if made is not None and made.made_at and is_only_copy(part, service.settings):
            age = _age(made.made_at, now)
            yield f"edge_{part}_age_seconds", f"Age of the newest {part}.", {}, age


def _machine_gauges(service: Service) -> list[Gauge]:
    labels = {"version": VERSION, "python": platform.python_version()}
    gauges: list[Gauge] = [("edge_build_info", "The installed version.", labels, 1.0)]
    for name, folder in find_folders(service.settings).items():
        usage, place = shutil.disk_usage(folder), {"folder": name}
        gauges.append(("edge_disk_free_bytes", "Room on its disk.", place, float(usage.free)))
        gauges.append(("edge_disk_size_bytes", "Size of its disk.", place, float(usage.total)))
    if expiry := service[MachineMonitor].expiry:
        days = (cert_time_to_seconds(expiry) - time.time()) / 86400
        gauges.append(("edge_certificate_days", "Until the certificate expires.", {}, days))
    return gauges


def _age(instant: str, now: datetime) -> float:
    return max((now - datetime.fromisoformat(instant)).total_seconds(), 0.0)


def _format_gauges(gauges: list[Gauge]) -> bytes:
    lines: dict[str, None] = {}
    for name, about, labels, value in sorted(gauges, key=lambda gauge: gauge[0]):
        lines[f"# HELP {name} {about}"] = None
        lines[f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"] = None
        pairs = ",".join(f'{key}="{text}"' for key, text in labels.items())
        lines[f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"] = None
    return "".join(f"{line}\n" for line in lines).encode()


OPERATIONS: tuple[AnyOperation, ...] = (
    Operation(
        name="metrics",
        path=METRICS,
        summary="What the service measures of itself, for Prometheus",
        description="For keys with the scope `metrics:read`. Only there with METRICS=on.",
        credential="required",
        scope="metrics:read",
        handler=lambda service, _request: service[Metrics].answer(service),
        responses=(
            SuccessResponse(200, "The metrics", {"type": "string"}, media_types=("text/plain",)),
        ),
    ),
)


def make_private_app(service: Service) -> App:
    """Return the application at METRICS_SOCKET: /metrics without a key, and nothing else."""
    opened = [replace(each, credential="none", scope=None) for each in OPERATIONS]
    return App(service, opened, _refuse, observers=[service[Metrics]])


async def _refuse(*_: object) -> NoReturn:
    raise Problem("not_found", "Only /metrics is here")
