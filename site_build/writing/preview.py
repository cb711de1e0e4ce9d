"""Previews and shares of stored texts: each is rendered as a page in a process of its own.

That takes seconds, and reads the whole content; saves go on meanwhile.
"""

import resource
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edge_api.schema.shares import PREVIEWS, SHARES, list_shares
from edge_api.schema.writing import Source, Spool, WriteAnswer
from site_build.cache import locate_cache
from site_build.errors import BuildError
from site_build.preview.shares import write_share
from site_build.progress import Request
from site_build.writing.versions import DraftFolder

_DAYS: Final = {PREVIEWS: 1, SHARES: 7}
_MOST_SECONDS: Final = 50
"""The longest time for making a page; the edge waits a little longer."""


class PageMaker:
    """Makes pages one after the other, each in a thread that waits for its process."""

    def __init__(self, content: Path, output: Path, site_url: str, spool: Spool) -> None:
        self._spool, self._drafts = spool, DraftFolder(spool.folder.parent)
        self._words = [sys.executable, "-m", __name__, str(content), str(output), site_url]
        self._turn = threading.Lock()

    def start(self, name: str, operation: str, source: Source, path: str) -> None:
        """Make the page of a source at a path, and answer the request of this name then."""
        raw, kind = source.markdown.encode(), f"{operation}s"
        pictures = self._drafts.pictures(raw)
        words = [*self._words, kind, path, str(self._drafts.folder), *pictures]
        threading.Thread(target=self._make, args=(name, words, raw), daemon=True).start()

    def _make(self, name: str, words: Sequence[str], raw: bytes) -> None:
        try:
            with self._turn:
                made = subprocess.run(  # noqa: S603
                    words, input=raw, stdout=subprocess.PIPE, check=True, timeout=_MOST_SECONDS
                )
            answer = WriteAnswer(path=made.stdout.decode())
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = (error.stdout or b"").decode() or "the page could not be made in time; try again"
            answer = WriteAnswer(refusal="unavailable", message=said)
        self._spool.answer(name, answer)


def main() -> int:
    """Print the token of a page with the text from standard input, or what is wrong."""
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    content, output, drafts = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[6])
    site_url, kind, path = sys.argv[3:6]
    raw, now = sys.stdin.buffer.read(), datetime.now(UTC).replace(microsecond=0)
    list_shares(output, now, kind)  # it deletes expired ones
    with TemporaryDirectory() as name:
        folder, digest = Path(name), sha256(raw).hexdigest()
        (folder / digest).write_bytes(raw)
        request = Request(
            content=content,
            site_folder=folder,
            state=folder,
            previous_state=folder,
            cache=locate_cache(output),
            now=datetime.max.replace(tzinfo=UTC),  # by then, every post has appeared
            jobs=1,
            kept_sources=folder,
        )
        try:
            _, token, _ = write_share(
                request,
                site_url,
                output,
                lambda each: each.path == path,
                now + timedelta(days=_DAYS[kind]),
                kind=kind,
                text=(path, digest),
                more={each: drafts / each for each in sys.argv[7:]},
            )
        except BuildError as error:
            sys.stdout.write(str(error))
            return 1
    sys.stdout.write(token or "the head of the text cannot be read; mend it")
    return int(not token)


if __name__ == "__main__":
    sys.exit(main())
