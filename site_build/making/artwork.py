"""Which pictures and cards a build makes, and how each is made only once.

They take longer than all the rest, so they are kept by what they are made from alone: a change of
theme or code that does not show in them leaves them as they are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from site_build import addresses
from site_build.faults import BuildError
from site_build.incremental.cache import make_key
from site_build.incremental.ledger import Entry
from site_build.incremental.tree import Recipe
from site_build.making.tasks import FileTask, Kept, Task, Workshop
from site_build.paint import choose_hue
from site_build.pictures.card import Card, CardPlace, digest_card, draw_card
from site_build.pictures.encode import ChangedError, encode, reduce_original
from site_build.pictures.gallery import Gallery
from site_build.pictures.lettering import Font, read_font
from site_build.pictures.measure import UNSHOWN
from site_build.pictures.picture import Form, Picture
from site_build.post import Document
from site_build.site import Identity, Site
from site_build.slug import make_slug

FONT = "fonts/SourceSerif4-SemiBold.ttf"
"""What cards are written with, within the theme; a theme without it has no cards."""

_SITE_BANDS = 7
"""Tags in the edge of the site's card: those that most posts carry."""


@dataclass(frozen=True, slots=True)
class PlateTask:
    """A picture that is made from nothing but what its key tells."""

    path: str
    key: bytes
    make: Callable[[], bytes]

    def run(self, workshop: Workshop) -> Entry | Kept:
        """Link the file of the build before, or write the picture from the cache or anew."""
        key = self.key.hex()
        before = workshop.tree.recall(self.path)
        if before and before.key == key and workshop.tree.keep(before):
            return Kept(self.path)
        data = workshop.plates.fetch(self.key, self.make)
        return workshop.tree.write(self.path, data, Recipe(key))


def find_font(theme: Path) -> Font | None:
    """Return the font of the theme's cards, if it has one; raises OSError for one unreadable."""
    path = theme / FONT
    return read_font(path) if path.is_file() else None


def find_card(font: Font | None, slug: str = "") -> CardPlace | None:
    """Return where a post's card stands, or the site's; None where the theme has none."""
    path = addresses.locate_card(slug) if slug else addresses.SITE_CARD
    return CardPlace(path) if font else None


def design_card(identity: Identity, post: Document) -> Card:
    """Return what the card of a post shows."""
    published = post.published
    hues = tuple(choose_hue(make_slug(tag)) for tag in post.tags)
    return Card(identity.name, post.title, f"{published.day} {published:%B %Y}", hues)


def list_cards(site: Site, font: Font) -> Iterator[Task]:
    """Yield a task for the card of each post and for that of the site."""
    tags = sorted(site.tags, key=lambda tag: (-len(tag.posts), tag.slug))
    hues = tuple(choose_hue(tag.slug) for tag in tags[:_SITE_BANDS])
    cards = {addresses.SITE_CARD: Card(site.identity.name, hues=hues)}
    for post in site.posts:
        cards[addresses.locate_card(post.slug)] = design_card(site.identity, post)
    for path, card in cards.items():
        yield PlateTask(path, digest_card(card, font), partial(draw_card, card, font))


def list_pictures(content: Path, gallery: Gallery, site: Site) -> Iterator[Task]:
    """Yield a task for each form that the site's pages offer of their pictures."""
    for picture, form in gallery.list_forms(each.path for each in site.posts + site.pages):
        make = partial(_encode, content, picture, form)
        yield PlateTask(form.path, make_key(form.path), make)


def list_files(content: Path, files: Sequence[str], gallery: Gallery) -> Iterator[Task]:
    """Yield a task for every file of the content folder that is published under its own name."""
    for path in (each for each in files if not each.lower().endswith(UNSHOWN)):
        picture = gallery.pictures.get(path)
        if picture and picture.is_reduced:
            yield PlateTask(path, make_key(picture.reduced_key), partial(_encode, content, picture))
        else:
            yield FileTask(path, content / path)


def _encode(content: Path, picture: Picture, form: Form | None = None) -> bytes:
    """Return a form of a picture, or its reduced original."""
    source = content / picture.path
    try:
        return encode(source, picture, form) if form else reduce_original(source, picture)
    except (ChangedError, FileNotFoundError) as error:
        raise BuildError(
            f"{picture.path} was changed while the site was being built; build again"
        ) from error
