"""Posts that others wrote, as a journal: of each, what the command says of its source."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.edge.edge_process import ROOT
from tests.judges.pages.sample import CONTACT, write_sample
from tests.shared_material import find_posts

_FINDING = re.compile(r"^(?P<file>.+\.md):\d+:\d+\s", re.MULTILINE)
_SLUG = re.compile(r'^slug:\s*"?([a-z0-9-]+)', re.MULTILINE)


def write_corpus(content: Path, count: int | None = None) -> Path:
    """Write so many posts of the corpus, or all, below `content`; without a corpus, the sample."""
    posts = find_posts()
    if not posts:
        return write_sample(content)
    for folder in ("posts", "pages", "images"):
        (content / folder).mkdir(parents=True)
    shutil.copy(CONTACT, content / "pages")
    step = max(1, len(posts) // count) if count else 1
    for post in posts[::step]:
        shutil.copy(post, content / "posts")
    return content


def named_sources(content: Path) -> set[str]:
    """Return the slugs of posts whose source `check` has something to say of.

    Half of the corpus names addresses in a form that is no definition; what comes of that is text.
    """
    command = [sys.executable, "-m", "site_build", "check", "--all", "--content", str(content)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode in (0, 1), done.stderr
    said = "\n".join(line for line in done.stdout.split("\n") if "no line says where" not in line)
    files = {found["file"] for found in _FINDING.finditer(said)}
    return {slug for file in files for slug in _SLUG.findall(Path(file).read_text("utf-8"))[:1]}


def post_pages(site: Path) -> Mapping[str, bytes]:
    """Return the page of each post of a built site, by its slug."""
    return {page.parent.name: page.read_bytes() for page in site.glob("journal/*/index.html")}
