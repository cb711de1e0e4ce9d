"""The process beside the watcher that answers requests to write, so that no build delays them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from select import select
from typing import Final

from edge_api.schema.index import CURRENT_LINK
from edge_api.schema.shares import PAGE_SECONDS
from edge_api.schema.writing import Spool, WriteAnswer, locate_var
from site_build.build.fingerprint import fingerprint_code
from site_build.cache import locate_cache
from site_build.content.edits import PARTIAL
from site_build.content.library import ContentLibrary
from site_build.content.sources import stamp
from site_build.errors import BuildError
from site_build.markup.convert import Dialect
from site_build.options import read_settings
from site_build.pelican_plugin.settings import SETTINGS_FILE, load_settings, read_dialect, warn
from site_build.progress import Request
from site_build.writing.versions import DraftFolder, Refused
from site_build.writing.writer import SourceWriter

POLL_SECONDS: Final = 0.02
"""Time between two looks into the spool."""
LOOK_SECONDS: Final = 5.0
"""Time between two looks for posts that were published by hand again."""
RESTART_SECONDS: Final = 1.0
"""The pause before the process is started again."""


@contextlib.contextmanager
def writing(content: Path, output: Path, site_url: str) -> Iterator[None]:
    """Keep the process running, and end it at the end of the context."""
    words = [sys.executable, "-m", __name__, str(content), str(output), site_url]
    is_over = threading.Event()

    def keep() -> None:
        while not is_over.is_set():
            # It ends when this pipe is closed, even by a kill of the watcher.
            with subprocess.Popen(words, stdin=subprocess.PIPE) as process:  # noqa: S603
                while process.poll() is None and not is_over.wait(0.1):
                    pass
            is_over.wait(RESTART_SECONDS)

    thread = threading.Thread(target=keep, name="writing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def load_library(
    content: Path, output: Path, dialect: Dialect, loaded: list[ContentLibrary]
) -> None:
    """Add the library of all texts to `loaded`, once a build has put them into the cache."""
    cache = locate_cache(output)
    request = Request(
        content=content,
        site_folder=cache.parent,
        state=cache.parent,
        previous_state=cache.parent,
        cache=cache,
        now=datetime.now(UTC),
        jobs=1,
    )
    while not loaded:
        with contextlib.suppress(BuildError):
            if (output / CURRENT_LINK).exists():
                loaded.append(ContentLibrary(request, fingerprint_code(), dialect))
        time.sleep(RESTART_SECONDS)


def answer_page(
    turn: threading.Lock, spool: Spool, name: str, words: list[str], raw: bytes
) -> None:
    """Let a page be made of a text, one at a time, and answer the request then."""
    try:
        with turn:
            made = subprocess.run(  # noqa: S603
                words, input=raw, stdout=subprocess.PIPE, check=True, timeout=PAGE_SECONDS
            )
        answer = WriteAnswer(path=made.stdout.decode())
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        answer = WriteAnswer(
            refusal="unavailable",
            message=(error.stdout or b"").decode()
            or "the page could not be made in time; try again",
        )
    spool.answer(name, answer)


def main() -> int:
    """Answer requests until standard input ends, or until the site's settings change."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the watcher ends this process
    content, output, site_url = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    database = read_settings().get("DATABASE_URL", "sqlite:///var/edge.db")
    spool = Spool(locate_var(database, output))
    settings = stamp(SETTINGS_FILE)
    dialect = read_dialect(load_settings(content, site_url))
    loaded: list[ContentLibrary] = []
    reading = (content, output, dialect, loaded)
    threading.Thread(target=load_library, args=reading, daemon=True).start()
    writer = SourceWriter(
        content, spool.folder.parent, site_url, dialect, lambda: next(iter(loaded), None)
    )
    turn, drafts = threading.Lock(), DraftFolder(spool.folder.parent)
    page = [sys.executable, "-m", "site_build.preview.shares", str(content), str(output), site_url]
    if not os.access(content, os.W_OK):
        warn(f"WRITING=on has no effect: {content} cannot be written by this user or unit")
        select([0], [], [])
        return 0
    with spool.watch():
        spool.tidy(time.time() - 3600)
        looked_at = 0.0
        with contextlib.suppress(Refused, BuildError, OSError):  # it is tried again
            writer.store.recover()
        for each in content.rglob(f"{PARTIAL}*"):
            shutil.rmtree(each, ignore_errors=True)
        # Nothing is ever sent to standard input, so it can be read only once it has ended.
        while not select([0], [], [], POLL_SECONDS)[0] and stamp(SETTINGS_FILE) == settings:
            try:
                for name, request in spool.claim():
                    answer = writer.answer(request, request.asked_at)
                    if request.operation in {"preview", "share"} and answer.source:
                        raw, kind = answer.source.markdown.encode(), f"{request.operation}s"
                        pictures = drafts.pictures(raw)
                        words = [*page, kind, answer.path, str(drafts.folder), *pictures]
                        asked = (turn, spool, name, words, raw)
                        threading.Thread(target=answer_page, args=asked, daemon=True).start()
                    else:
                        spool.answer(name, answer)
                    looked_at = 0.0
                if time.monotonic() - looked_at > LOOK_SECONDS:
                    writer.restore(datetime.now(UTC))
                    looked_at = time.monotonic()
            except (BuildError, OSError) as error:  # the edge says that nothing came back
                warn(f"a request to write cannot be answered: {error}")
                time.sleep(RESTART_SECONDS)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # the spool cannot be written, or another watcher has it
        sys.exit(
            "WRITING=on has no effect: another watcher of this journal has it"
            if isinstance(error, BlockingIOError)
            else f"WRITING=on has no effect: {error}"
        )
