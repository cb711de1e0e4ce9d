"""Ten posts that people wrote, where the corpus is at hand, and the project's own few."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.shared_material import CORPUS

OWN = Path(__file__).parents[1] / "content" / "posts"

_TEN = (
    "18f-project-defaults",
    "announcing-rust-1-15-1",
    "announcing-rust-1-85-1",
    "building-distributed-teams",
    "electing-new-project-directors-2025",
    "how-to-integrate-the-draft-u-s-web-design-standards-into-existing-proj",
    "leadership-council-march-representative-selections-b",
    "product-management-at-18f-part-1-new-engagements",
    "security-advisory-for-cargo-cve-2022-46176",
    "this-development-cycle-in-cargo-1-86",
)
SETS: Mapping[str, tuple[Path, ...]] = MappingProxyType(
    {
        "own": tuple(OWN / f"{name}.md" for name in ("first", "second", "third")),
        **({"corpus": tuple(CORPUS / f"{slug}.md" for slug in _TEN)} if CORPUS.is_dir() else {}),
    }
)
"""Source files by the name of their set."""


def body_of(path: Path) -> str:
    """Return the Markdown of a post without its front matter."""
    return path.read_text(encoding="utf-8").split("---\n", 2)[2]
