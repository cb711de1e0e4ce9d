"""The folder of larger material outside the checkout: tests do more where it is there.

It is the one that SHARED_DIR names, or else `shared` beside the checkout.
"""

import os
from pathlib import Path

SHARED = Path(os.environ.get("SHARED_DIR") or Path(__file__).resolve().parents[2] / "shared")
CORPUS = SHARED / "corpus" / "posts"
"""A folder of posts that people wrote; it may be missing."""


def find_posts() -> list[Path]:
    """Return the files of the corpus; none where it is missing."""
    return sorted(CORPUS.glob("*.md"))


def find_sites(kind: str = "") -> list[str]:
    """Return the names of journals of other systems that begin with `kind`; none if missing."""
    return sorted(each.name for each in (SHARED / "sites").glob(f"{kind}*") if each.is_dir())
