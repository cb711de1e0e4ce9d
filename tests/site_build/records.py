"""Posts, and their records in the index, as tests of what is written about them want them."""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict

from edge_api.schema.index import IndexHead, PostRecord
from site_build.addresses import DEFAULT_ADDRESSES
from site_build.site import Document, Identity

ME = Identity("https://journal.test", "A & B", "Of <things>.", "Ann", "en")
DAY = datetime(2026, 3, 1, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


class PostIndex(BaseModel):
    """The whole file of the index: its head, and every public post, newest first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: IndexHead
    posts: tuple[PostRecord, ...]


def make(slug: str, published: datetime = DAY, **changes: object) -> Document:
    """Return a public post, or a page where `kind` says so."""
    values: dict[str, object] = {
        "path": f"posts/{slug}.md",
        "kind": "post",
        "slug": slug,
        "title": f"Title of {slug}",
        "description": f"About {slug}.",
        "excerpt": f"About {slug}.",
        "published": published,
        "updated": published,
        "tags": (),
        "lang": "",
        "draft": False,
        "markdown": "",
        "body_line": 1,
        "digest": "",
    }
    known = {**values, **changes}
    known.setdefault("address", DEFAULT_ADDRESSES.locate(str(known["kind"]), str(known["slug"])))
    return Document(**known)  # type: ignore[arg-type]


def record(slug: str, published: datetime = DAY, **changes: object) -> PostRecord:
    """Return a record of the posts index."""
    values = {
        "slug": slug,
        "title": f"Title of {slug}",
        "description": f"About {slug}.",
        "excerpt": f"Excerpt of {slug}.",
        "publishedAt": published,
        "published_at": published,
        "updatedAt": published,
        "readingMinutes": 1,
        "tags": ("one", "two & three"),
        "url": f"{ME.url}/journal/{slug}/",
        "content": f"Words of {slug}.",
        "content_html": f"<p>Words of {slug} &amp; more.</p>",
    }
    return PostRecord.model_validate({**values, **changes})


def parse(text: str | bytes) -> ET.Element:
    """Return the root of what a renderer wrote."""
    return ET.fromstring(text)  # noqa: S314 - it is our own
