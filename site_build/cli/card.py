"""`card`: draws a post's card, and prints how search engines and feeds show the post."""

import sys
from functools import partial
from pathlib import Path
from typing import Final

from click import Argument, Option

from edge_api.schema.commands import Arguments, parameter_type
from site_build import addresses
from site_build.build.assets import FONT, design_card, find_font
from site_build.checks.facts import find_source
from site_build.cli.post import find_post
from site_build.cli.terminal import open_console, print_findings
from site_build.errors import BuildError
from site_build.images.card import PHOTOGRAPH_SIZE, SIZE, can_write_title, draw_card
from site_build.images.encode import cut
from site_build.images.responsive import measure
from site_build.options import CONTENT, SITE_URL
from site_build.pelican_plugin.settings import load_settings, read_identity
from site_build.text import shorten, write_instant


def _read_output(text: str) -> Path:
    """Return the path to write to; raises ValueError unless it ends in .png or .jpeg."""
    if not text.lower().endswith((".png", ".jpeg")):
        raise ValueError(f"a card is a PNG or a JPEG; end {text!r} in .png or .jpeg")
    return Path(text)


PARAMS: Final = (
    Argument(["slug"], help="slug of a post or draft"),
    *CONTENT,
    SITE_URL,
    Option(
        ["--output"],
        type=parameter_type(_read_output),
        metavar="FILE",
        help="PNG file, or JPEG for a post with a picture (default: SLUG.png or SLUG.jpeg)",
    ),
)


def run(arguments: Arguments) -> int:
    """Write the card, and print how the post is shown elsewhere. Raises BuildError."""
    console = open_console()
    path, _, post, findings = find_post(arguments.content, arguments.slug)
    if post is None:
        print_findings(console, arguments.content, findings)
        raise BuildError(f"{arguments.content / path} cannot be read; fix this first")
    settings = load_settings(arguments.content, arguments.site_url)
    identity, theme = read_identity(settings), Path(settings["THEME"])
    font = find_font(theme)
    if font is None:
        raise BuildError(f"the theme has no font for cards; put {theme / FONT} there")
    source = find_source(post.path, post.image)
    file = arguments.content / source
    picture = measure(source, file.read_bytes()).picture if file.is_file() else None
    if picture and not picture.can_lead:
        picture = None
    card, kind = design_card(identity, post, picture), "jpeg" if picture else "png"
    output = arguments.output or Path(f"{post.slug}.{kind}")
    if output.suffix.lower() != f".{kind}":
        raise BuildError(f"the card of this post is a {kind.upper()}; end {output} in .{kind}")
    photograph = partial(cut, file, picture, PHOTOGRAPH_SIZE, "white") if picture else None
    try:
        output.write_bytes(draw_card(card, font, photograph))
    except OSError as refusal:
        raise BuildError(f"{output} cannot be written: {refusal.strerror}") from refusal
    kilobytes = output.stat().st_size / 1000
    console.print(f"{output} is drawn: {SIZE[0]} by {SIZE[1]} pixels, {kilobytes:.0f} kB")
    views = {
        "In search results": [
            f"{post.title} · {identity.name}{'  (a draft)' if post.draft else ''}",
            identity.absolute(post.address),
            post.description,
        ],
        "In feeds and lists": [
            post.title,
            f"{write_instant(post.published)}  {', '.join(post.tags)}",
            post.excerpt,
        ],
        "Where it is shared": [
            post.title,
            post.description,
            identity.absolute(addresses.locate_card(post.slug, kind)),
        ],
    }
    for heading, lines in views.items():
        console.print(f"\n{heading}")
        for line in lines:
            console.print(f"  {shorten(line, 1_000)}")  # shorten removes control characters
    if not can_write_title(card, font):
        sys.stderr.write(
            "no font of the theme or of this machine can write this title, so boxes stand for "
            "letters of the card; put one that can beside the theme's font\n"
        )
    return 0
