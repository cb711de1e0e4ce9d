"""The bytes of whole sites in three states, as digests: a build that says the same keeps them all.

    python -m tests.site_build.digests

writes them anew. Look at the difference first: it names the kinds of files that are others now.
"""

import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.shared_material import CORPUS, find_posts
from tests.site_build.workbench import HERE, JOURNAL, PACKED, ROOT, Workbench, take

FILE = HERE / "digests.json"
SITES = {
    "small journal": JOURNAL,
    "own journal": ROOT / "content",
    **({"corpus": CORPUS} if find_posts() else {}),
}
"""Content by what it is called; the corpus where it is there."""
INSTANT = "2026-10-01T00:00:00Z"

_HASH = re.compile(rb"\b[0-9a-f]{12,64}\b")

Digests = dict[str, dict[str, str]]
"""By the name of a state, and by the suffix of files: one digest of their paths and bytes."""


def make_digests(content: Path, folder: Path) -> Digests:
    """Build a site three times in `folder`: from nothing, after one edit, with one post less."""
    bench = Workbench(folder / "content", folder / "build")
    if content == CORPUS:
        shutil.copytree(content, bench.content / "posts")
    else:
        shutil.copytree(content, bench.content)
    posts = sorted((bench.content / "posts").glob("*.md"))
    found = {"cold": _digest(bench)}
    with posts[len(posts) // 2].open("a", encoding="utf-8") as post:
        post.write("\n## One more section\n\nWords that were not there before.\n")
    found["one edit"] = _digest(bench)
    posts[len(posts) // 3].unlink()
    found["one removed"] = _digest(bench)
    return found


def _digest(bench: Workbench) -> dict[str, str]:
    files = take(bench.build(INSTANT, jobs=2) / "site")
    kinds: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, data in files.items():
        if not path.endswith((*PACKED, ".png")):  # Cards differ with the machine's zlib.
            # Names of assets and pictures are digests, also of the code that makes them.
            plain = data if b"\0" in data else _HASH.sub(b"#", data)
            path = _HASH.sub(b"#", path.encode()).decode()  # noqa: PLW2901
            kinds[Path(path).suffix].append((path, hashlib.sha256(plain).hexdigest()))
    return {
        kind: f"{len(found)} files, {hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]}"
        for kind, found in sorted(kinds.items())
    }


def list_all() -> Iterator[tuple[str, Digests]]:
    """Yield the digests of each site by its name."""
    for name, content in SITES.items():
        with TemporaryDirectory() as folder:
            yield name, make_digests(content, Path(folder))


if __name__ == "__main__":
    kept = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps({**kept, **dict(list_all())}, indent=2) + "\n", "utf-8")
