"""The site build against stock Pelican on the same posts, cold and after one edit.

`python -m benchmarks.build [COUNT ...]`: 1,000 and 10,000 posts unless said otherwise. Both make
posts, a paginated index, tag pages and an Atom feed; ours makes twins, an index for the edge and
compressed forms besides. Everything lies in memory, to keep the disk's moods out.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.corpus import write_posts

_STOCK = """
SITENAME = AUTHOR = "Stock"
SITEURL = "http://127.0.0.1:8000"
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
PLUGINS = []
DEFAULT_PAGINATION = 20
FEED_ALL_ATOM = "feed.xml"
CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
"""
_MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it


def main(counts: list[int]) -> None:
    """Measure each count and print a line for it."""
    place = _MEMORY if _MEMORY.is_dir() else None
    for count in counts:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            stock = _stock(Path(folder) / "stock", count)
            cold, edited = _ours(Path(folder) / "ours", count)
        print(
            f"{count:>6} posts: stock Pelican {stock:.1f} s; ours cold {cold:.1f} s "
            f"({stock / cold:.1f} x faster), after one edit {edited:.2f} s "
            f"({stock / edited:.1f} x faster than stock, which makes everything again)",
            flush=True,
        )


def _stock(folder: Path, count: int) -> float:
    write_posts(folder / "content", count, "pelican")
    settings = folder / "stock.py"
    settings.write_text(_STOCK, encoding="utf-8")
    words = [str(folder / "content"), "-s", str(settings), "-o", str(folder / "output"), "-q"]
    return _time([sys.executable, "-m", "pelican", *words])


def _ours(folder: Path, count: int) -> tuple[float, float]:
    write_posts(folder / "content", count)
    options = ["--content", str(folder / "content"), "--output", str(folder / "build")]
    command = [sys.executable, "-m", "site_build", "build", *options]
    cold = _time(command)
    post = sorted((folder / "content").glob("*.md"))[count // 2]
    post.write_text(f"{post.read_text(encoding='utf-8')}\nOne line more.\n", encoding="utf-8")
    return cold, _time(command)


def _time(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PORT": "8000"})
    return time.perf_counter() - started


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000, 10_000])
