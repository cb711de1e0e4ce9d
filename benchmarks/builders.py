"""What makes a site of a folder of posts: this project, stock Pelican and Hugo, as they come."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.corpus import Form, write_posts
from benchmarks.peers.environment import find_hugo
from benchmarks.race import EDGE

PELICAN: Final = "stock Pelican"
HUGO: Final = "Hugo"
CONTENT: Final = "content"
"""The folder of the posts in that of a site."""
MAKES: Final = (
    "Each has its own theme, and makes what it makes without being asked for more. Pelican: the "
    "page of each post, an index, tags, a feed. Hugo, with the theme it makes for a beginner: the "
    "same, and a feed of each list. Fore-edge: also a Markdown twin and a card of each post, "
    "related posts, JSON-LD, feeds in two forms, the index for the edge, checks of all documents, "
    "and everything compressed by gzip and Brotli."
)
_STOCK: Final = """\
SITENAME = AUTHOR = "Stock"
SITEURL = "http://127.0.0.1:8000"
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
PLUGINS = []
DEFAULT_PAGINATION = 20
FEED_ALL_ATOM = "feed.xml"
CATEGORY_FEED_ATOM = TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
"""
_HUGO: Final = """\
baseURL = "http://127.0.0.1:8000/"
title = "Stock"
theme = "own"
"""


@dataclass(frozen=True, slots=True)
class Builder:
    """Something that builds a site."""

    name: str
    form: Form
    """How it reads what stands before a post."""
    output: str
    """The folder of the finished pages, in that of the site."""
    page: str
    """Where in it a post's page is, with `{}` for the slug."""
    settle: Callable[[Path], list[str]]
    """Writes what a site needs beside its posts; returns the command that builds it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A folder in which a builder builds."""

    builder: Builder
    folder: Path
    command: list[str]

    @property
    def posts(self) -> list[Path]:
        """The files of the posts, each named by its slug."""
        return sorted((self.folder / CONTENT).glob("*.md"))

    @property
    def output(self) -> Path:
        """The folder of the finished pages."""
        return self.folder / self.builder.output

    def page(self, post: Path) -> Path:
        """Return where the page of a post is to be."""
        return self.output / self.builder.page.format(post.stem)


def prepare(builder: Builder, folder: Path, posts: int) -> Site:
    """Put down so many posts and what else the builder needs."""
    write_posts(folder / CONTENT, posts, builder.form)
    return Site(builder, folder, builder.settle(folder))


def _settle_ours(folder: Path) -> list[str]:
    options = ["--content", str(folder / CONTENT), "--output", str(folder / "build")]
    return [sys.executable, "-m", "site_build", "build", *options]


def _settle_pelican(folder: Path) -> list[str]:
    settings = folder / "stock.py"
    settings.write_text(_STOCK, encoding="utf-8")
    options = ["-s", str(settings), "-o", str(folder / "output"), "-q"]
    return [sys.executable, "-m", "pelican", str(folder / CONTENT), *options]


def _settle_hugo(folder: Path) -> list[str]:
    """Take the theme that Hugo makes for a beginner, without its sample posts."""
    hugo = str(find_hugo())
    subprocess.run([hugo, "new", "theme", "own", "--quiet"], cwd=folder, check=True)
    shutil.rmtree(folder / "themes" / "own" / CONTENT)
    (folder / "hugo.toml").write_text(_HUGO, encoding="utf-8")
    caches = ["--cacheDir", str(folder / "cache")]
    return [hugo, "--quiet", "--source", str(folder), *caches]


OURS: Final = Builder(EDGE, "yaml", "build/current/site", "journal/{}/index.html", _settle_ours)
STOCK: Final = Builder(PELICAN, "pelican", "output", "{}.html", _settle_pelican)
OTHER: Final = Builder(HUGO, "yaml", "public", "{}/index.html", _settle_hugo)
BUILDERS: Final = (OURS, STOCK, OTHER)
