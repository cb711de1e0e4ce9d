"""What the site's settings say of source files: where they lie, and what their heads may say."""

from typing import NamedTuple

from site_build.addresses import HOUSE, Addresses


class SourceRules(NamedTuple):
    """Pelican's settings about source files; paths are relative to the content folder, with `/`."""

    addresses: Addresses = HOUSE
    posts: tuple[str, ...] = ("",)
    """Folders of posts (ARTICLE_PATHS)."""
    pages: tuple[str, ...] = ("pages",)
    """Folders of pages (PAGE_PATHS)."""
    static: tuple[str, ...] = ("images",)
    """Folders and files that are published as they are (STATIC_PATHS)."""
    excluded_posts: tuple[str, ...] = ()
    """Folders of which no post is read (ARTICLE_EXCLUDES)."""
    excluded_pages: tuple[str, ...] = ()
    excluded_static: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    """Files with the paths that they are published at (EXTRA_PATH_METADATA)."""
    extra: tuple[str, ...] = ()
    """Keys that a head may have besides (FRONT_MATTER_EXTRA)."""
    category: str = "misc"
    """Of a post that names none (DEFAULT_CATEGORY)."""
    folder_is_category: bool = True
    """Whether the folder of a post names its category (USE_FOLDER_AS_CATEGORY)."""
    name_pattern: str = r"(?P<date>\d{4}-\d{2}-\d{2}).*"
    """What the name of a file says of its head (FILENAME_METADATA)."""
    slug_source: str = "title"
    """What gives the slug of a post with Pelican's head: `title` or `basename` (SLUGIFY_SOURCE)."""
    timezone: str = "UTC"
    """Of dates that name none (TIMEZONE)."""
    author: str = ""
    """Of a text that names none, in addresses (AUTHOR)."""
    lang: str = "en"
    """Likewise (DEFAULT_LANG)."""

    def is_page(self, path: str) -> bool:
        """Tell whether the source file at `path` is a page, not a post."""
        posts = tuple(folder for folder in self.posts if folder)
        return _is_below(path, self.pages) and not _is_below(path, posts)

    def is_source(self, path: str) -> bool:
        """Tell whether the Markdown file at `path` is built."""
        excluded = self.excluded_pages if self.is_page(path) else self.excluded_posts
        return _is_below(path, self.posts + self.pages) and not _is_below(path, excluded)

    def is_static(self, path: str) -> bool:
        """Tell whether the file at `path` is published as it is."""
        return _is_below(path, self.static) and not _is_below(path, self.excluded_static)

    def list_paths(self, files: tuple[str, ...]) -> dict[str, str]:
        """Return the path on the site of each of `files`."""
        moved = dict(self.moved)
        return {file: moved.get(file, file) for file in files}


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return any(not each or path == each or path.startswith(f"{each}/") for each in folders)
