"""Keeps the served edition true to the content and to the clock, until it is told to stop.

Whatever changes is built; the edition of the next scheduled instant is made ahead and swapped in
when its time has come. Content that must not be published leaves the served edition standing until
it is mended; whatever else stops a build may be over soon, so that is tried again.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from watchfiles import watch

from site_build.editions.edition import Order, build, prepare, serve_prepared, withdraw
from site_build.editions.heartbeat import HeartbeatThread
from site_build.faults import BuildError, BusyError, ContentError
from site_build.request import Report

_GLANCE = 200
"""Milliseconds between two looks at the clock."""

_CALM = 100
"""Milliseconds without a change after which a burst of changes is over."""

_LONGEST_BURST = 1000
"""Milliseconds after which a burst is taken for over in any case."""

_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Served:
    """An edition is served from now on."""

    report: Report


@dataclass(frozen=True, slots=True)
class Prepared:
    """An edition waits for its instant."""

    report: Report


@dataclass(frozen=True, slots=True)
class Refused:
    """Something stopped a build; what was served still is."""

    error: BuildError


@dataclass(frozen=True, slots=True)
class Outdated:
    """Other code is installed than this process runs."""


News = Served | Prepared | Refused | Outdated


class Publisher:
    """Turns changes and instants into editions; `tell` hears of each, and once of each error."""

    def __init__(self, order: Order, tell: Callable[[News], None]) -> None:
        self._order = order
        self._tell = tell
        self._stale = True
        self._due: datetime | None = None
        """When the next scheduled post or page appears."""
        self._ahead: Report | None = None
        """The edition that was made for that instant."""
        self._backoff = Backoff()
        self._told: object = None
        """The error that was reported last, if no edition came after it."""
        self.failure = ""
        """Why the last build failed, in one line; empty where it did not."""

    def note_change(self) -> None:
        """Remember that what is served may be out of date, and what was refused may be mended."""
        self._stale = True
        self._backoff.reset()

    def act(self, now: datetime) -> None:
        """Do the next thing that is due at `now` (UTC), if any."""
        if self._backoff.is_on(now):
            return
        try:
            news = self._step(now)
        except BusyError:
            return  # Somebody builds by hand; that may be over at the next glance.
        except ContentError as error:
            self._wait_for_change(now)
            self._refuse(error, error.findings)
        except BuildError as error:
            self._retry_later(now)
            self._refuse(error, str(error))
        else:
            if news:
                self._backoff.reset()
                self._told = None
                self.failure = ""
                self._tell(news)

    def _step(self, now: datetime) -> News | None:
        if self._stale:
            return self._build(now)
        if self._due and self._due <= now:
            return self._swap(now)
        if self._due and self._ahead is None:
            self._ahead = prepare(replace(self._order, now=self._due))
            return Prepared(self._ahead)
        return None

    def _build(self, now: datetime) -> News:
        report = build(replace(self._order, now=now))
        self._stale = False
        self._withdraw()
        self._due = report.next_instant
        return Served(report)

    def _swap(self, now: datetime) -> News:
        """Serve the edition that was made ahead, or build, should somebody have taken it away."""
        if self._ahead is None or serve_prepared(self._order.output) != self._ahead.build_id:
            return self._build(now)
        report, self._ahead = self._ahead, None
        self._due = report.next_instant
        return Served(report)

    def _wait_for_change(self, now: datetime) -> None:
        """Rest until the content changes; its next instant, where it is known, is still tried.

        What a check finds depends on the instant too: a link to a scheduled post is broken before.
        """
        self._stale = False
        self._withdraw()
        self._backoff.wait_for(now, self._due)

    def _retry_later(self, now: datetime) -> None:
        if self._stale:
            self._withdraw()
        self._backoff.begin(now, self._due)

    def _refuse(self, error: BuildError, subject: object) -> None:
        """Report what stopped a build, unless the last report was of the same subject."""
        self.failure = str(error).partition("\n")[0]
        if subject != self._told:
            self._told = subject
            self._tell(Refused(error))

    def _withdraw(self) -> None:
        """Forget the edition that was made ahead: it may say what its author has taken back."""
        self._ahead = None
        with suppress(BuildError):
            withdraw(self._order.output)


def publish(
    order: Order,
    watched: Iterable[Path],
    tell: Callable[[News], None],
    heart: HeartbeatThread,
    *,
    stays: bool,
) -> None:
    """Publish until interrupted, or until other code is installed; then `stays` only reports it.

    The order's own instant does not count; `watched` are the files and folders that an edition is
    made from. Raises KeyboardInterrupt when a signal ends it.
    """
    publisher = Publisher(order, tell)
    is_told = False
    for changed in _glance(watched):
        if changed:
            publisher.note_change()
        publisher.act(datetime.now(UTC))
        heart.note(publisher.failure)
        if heart.is_outdated and not is_told:
            is_told = True
            tell(Outdated())
            if not stays:
                return


def _glance(watched: Iterable[Path]) -> Iterator[bool]:
    """Yield again and again whether something has changed since the last time.

    The watch goes on while the caller builds, so no change is missed.
    """
    glances = watch(
        *watched,
        debounce=_LONGEST_BURST,
        step=_CALM,
        rust_timeout=_GLANCE,
        yield_on_timeout=True,
    )
    for changes in glances:
        yield bool(changes)


class Backoff:
    """A pause after a refused attempt, and the length of the next one: short at first."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """End the pause; the next one is short again."""
        self._length = _FIRST_PAUSE
        self._since = self._until = datetime.min.replace(tzinfo=UTC)

    def is_on(self, now: datetime) -> bool:
        """Tell whether nothing is to be tried at `now` (UTC); a clock set back ends a pause."""
        return self._since <= now < self._until

    def begin(self, now: datetime, due: datetime | None) -> None:
        """Pause, each time twice as long up to five minutes, but not beyond an instant `due`."""
        self.wait_for(now, due)
        self._until = min(self._until, now + self._length)
        self._length = min(2 * self._length, _LONGEST_PAUSE)

    def wait_for(self, now: datetime, due: datetime | None) -> None:
        """Pause until an instant that is still to come, or for good."""
        self._since, self._until = now, due if due and due > now else _NEVER
