"""Fetches pictures that texts show from the old journal's host and that no local file holds."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from yarl import URL

from edge_api.net.ssrf_guard import SsrfGuard, read_chunks
from site_build.importers.imported import Imported

MAX_PICTURE_BYTES = 25_000_000  # bytes of one picture
_GUARD = SsrfGuard()
MAX_TOTAL_BYTES = 1_000_000_000  # bytes of all pictures together


async def fetch_pictures(
    imported: Imported,
    folder: Path,
    agrees: Callable[[str], bool],
    guard: SsrfGuard = _GUARD,
) -> None:
    """Save missing pictures in `folder` and add them to the journal's files; note each failure.

    `agrees` is called with a question that has their number and size; if it returns False, none is
    fetched.
    """
    origin, sources, slots = URL(), dict[str, str](), asyncio.Semaphore(6)
    with suppress(ValueError):
        origin = URL(imported.origin)
    if not origin.host:
        imported.note(
            "",
            0,
            "no picture was fetched, since nothing says at which host the journal was",
            "put them below content/, at the paths that texts name",
        )
        return
    for text in imported.texts:
        for link in re.findall(
            r"(?i)[(<\"'\s]([^\s()<>\[\]\"']+\.(?:jpe?g|png|gif|webp|avif))(?=[?#\s)>\"'])",
            f"{text.body}\n{text.image}\n",
        ):
            with suppress(ValueError):
                url = urlsplit(urljoin(f"{imported.origin}{text.address or '/'}", link))
                path = unquote(url.path).lstrip("/")
                if (
                    _normalize_host(url.hostname) == _normalize_host(origin.host)
                    and path not in imported.files
                ):
                    sources.setdefault(path, text.source)
    files = {path: folder / str(number) for number, path in enumerate(sources)}

    async def request_all(sizes: Mapping[str, int]) -> dict[str, int | str]:
        requests = {
            path: _request(guard, slots, origin / path, files[path], size)
            for path, size in sizes.items()
        }
        return dict(zip(requests, await asyncio.gather(*requests.values()), strict=True))

    found = await request_all(dict.fromkeys(files, 0))
    wanted = {path: e for path, e in found.items() if isinstance(e, int) and e <= MAX_PICTURE_BYTES}
    size, number = sum(wanted.values()), f"{len(wanted):,} pictures of {origin}"
    if (
        wanted
        and size <= MAX_TOTAL_BYTES
        and agrees(f"{number}, {size / 1e6:.1f} MB, are missing; fetch them?")
    ):
        found |= await request_all(wanted)
    imported.files |= {path: file for path, file in files.items() if file.exists()}
    for path, result in found.items():
        if path not in imported.files:
            why = result if isinstance(result, str) else f"its {result:,} bytes were not wanted"
            imported.note(
                sources[path],
                0,
                f"the picture /{path} was not fetched: {why}",
                f"put it at content/{path}, or remove it from the text",
            )


async def _request(
    guard: SsrfGuard, slots: asyncio.Semaphore, url: URL, file: Path, most: int
) -> int | str:
    """Return the number of bytes of the picture at `url`, or the reason why there is none.

    If `most` is 0, a HEAD request asks for the number. Otherwise GET saves the picture in `file`,
    unless it has more than `most` bytes. Redirects are followed only within the host.
    """
    method = "GET" if most else "HEAD"
    try:
        async with slots, asyncio.timeout(10 if method == "HEAD" else 60):
            for _ in range(4):
                async with guard.request(method, url, {}) as answer:
                    if answer.status == 200:  # noqa: PLR2004
                        data = b"".join([each async for each in read_chunks(answer, most)])
                        if len(data) > most:
                            return "it is larger than its server said"
                        size = answer.content_length or "its server does not say its size"
                        return await asyncio.to_thread(file.write_bytes, data) if data else size
                    target = url.join(URL(answer.headers.get("Location", "")))
                if _normalize_host(target.host) != _normalize_host(url.host):
                    break
                url = target
            return f"its server answers {answer.status}"
    except Exception:  # noqa: BLE001  One failure must not stop the other pictures.
        return "its server cannot be reached at a public address"


def _normalize_host(host: str | None) -> str:
    return (host or "").lower().removeprefix("www.")
