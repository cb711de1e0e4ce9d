"""JSON-LD as templates ask for it: one call for each kind of page.

What a call is given are values that its template has looked up, so a change of them is noticed as
any other change of a page.
"""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from site_build.pictures.card import CardPlace
from site_build.renderers.structured_data import Json, Vocabulary, write_script
from site_build.site import Identity
from site_build.views.content import Article, Page, Tag

_KINDS = {"about": "AboutPage", "contact": "ContactPage"}
"""Pages of which schema.org has a kind, by their slugs."""

FindCard = Callable[[str], CardPlace | None]
"""Gives the card of a post by its slug, where the theme has cards."""


class StructuredData:
    """The `structured_data` of templates."""

    def __init__(self, identity: Identity, find_card: FindCard, logo: str = "") -> None:
        self._find_card = find_card
        self._vocabulary = Vocabulary(identity, logo)
        lists = identity.addresses
        self._lists = [("Journal", lists.journal or ""), ("Tags", lists.tags or "")]

    def home(self) -> Markup:
        """Return what the home page is."""
        made = self._vocabulary
        return _write(made.describe_website(), made.describe_organization(), made.describe_blog())

    def post(self, article: Article) -> Markup:
        """Return what a post is."""
        made = self._vocabulary
        node = made.describe_post(article, self._find_card(article.slug))
        return _write(
            node, made.describe_trail(*self._lead("Journal"), (article.title, article.url))
        )

    def page(self, page: Page) -> Markup:
        """Return what a page is that stands by itself."""
        made = self._vocabulary
        node = made.describe_page(_KINDS.get(page.slug, "WebPage"), page)
        return _write(node, made.describe_trail((page.title, page.url)))

    def journal(self, file: str, articles: Sequence[Article]) -> Markup:
        """Return what one leaf of the journal is; `file` is its own."""
        made = self._vocabulary
        node = made.describe_list("Journal", _locate(file), articles)
        trail = made.describe_trail(*self._lead("Journal"))
        return _write(node, made.describe_blog(), trail)

    def tag(self, tag: Tag, file: str, articles: Sequence[Article]) -> Markup:
        """Return what one leaf of a tag's posts is; `file` is its own."""
        made = self._vocabulary
        node = made.describe_list(tag.name, _locate(file), articles)
        return _write(node, made.describe_trail(*self._lead("Tags"), (tag.name, tag.url)))

    def overview(self, title: str, file: str) -> Markup:
        """Return what the list of tags is, or the archive; `file` is its own."""
        made, own = self._vocabulary, _locate(file)
        return _write(made.describe_overview(title, own), made.describe_trail((title, own)))

    def _lead(self, title: str) -> list[tuple[str, str]]:
        """Return the step of a trail that is the list of this title, where there is one."""
        return [step for step in self._lists if step[0] == title and step[1]]


def _locate(file: str) -> str:
    """Return the address at which a page's file answers."""
    return file.removesuffix("index.html")


def _write(*nodes: Json) -> Markup:
    return Markup(write_script(nodes))  # noqa: S704 - `write_script` has escaped it
