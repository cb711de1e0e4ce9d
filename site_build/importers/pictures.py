"""Pictures that texts show from the old journal's own host, fetched where no file holds them."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from yarl import URL

from edge_api.net.ssrf_guard import SsrfGuard, read_chunks
from site_build.importers.imported import Imported

LARGEST = 25_000_000  # bytes of one picture
_GUARD = SsrfGuard()
MOST = 1_000_000_000  # bytes of all


async def fetch_pictures(
    imported: Imported,
    folder: Path,
    agrees: Callable[[str], bool],
    guard: SsrfGuard = _GUARD,
) -> None:
    """Put missing pictures into `folder` and among the files; each that fails is a finding.

    `agrees` is asked before the first is fetched, in a question that has their number and size.
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
                if _name(url.hostname) == _name(origin.host) and path not in imported.files:
                    sources.setdefault(path, text.source)
    files = {path: folder / str(number) for number, path in enumerate(sources)}

    async def ask(sizes: Mapping[str, int]) -> dict[str, int | str]:
        asked = {
            path: _request(guard, slots, origin / path, files[path], size)
            for path, size in sizes.items()
        }
        return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))

    found = await ask(dict.fromkeys(files, 0))
    wanted = {path: e for path, e in found.items() if isinstance(e, int) and e <= LARGEST}
    size, number = sum(wanted.values()), f"{len(wanted):,} pictures of {origin}"
    if (
        wanted
        and size <= MOST
        and agrees(f"{number}, {size / 1e6:.1f} MB, are missing; fetch them?")
    ):
        found |= await ask(wanted)
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
    """Return the bytes of what is at `url`, which GET puts into a file, or why there is nothing.

    A redirect is followed within the host alone. Of more than `most` bytes, which HEAD said there
    are, nothing is kept; of 0, HEAD asks.
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
                    to = url.join(URL(answer.headers.get("Location", "")))
                if _name(to.host) != _name(url.host):
                    break
                url = to
            return f"its server answers {answer.status}"
    except Exception:  # noqa: BLE001  Whatever it is, the next picture may be fetched.
        return "its server cannot be reached at a public address"


def _name(host: str | None) -> str:
    return (host or "").lower().removeprefix("www.")
