"""Scripts that stand in the pages themselves, because one must run before the first paint.

A browser runs them by their hashes alone (CSP level 3, section 2.3.1), and those the edge sends. It
knows nothing of pages.
"""

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from markupsafe import Markup

from edge_api.schema.site_policy import INLINE_SCRIPTS
from site_build.faults import BuildError

_PREFACE = re.compile(r"\A\s*/\*.*?\*/\s*", re.DOTALL)
"""What a file says to those who mend it."""


def find_inline(folder: Path) -> Callable[[str], Markup]:
    """Return what reads a script of this folder once, without its preface, for a page's head.

    That raises BuildError for one that is not there or that no browser would run.
    """

    @cache
    def read(name: str) -> Markup:
        path = folder / name
        if not path.is_file():
            raise BuildError(f"a template asks for inline('{name}'), which is not in {folder}")
        script = _PREFACE.sub("", path.read_text(encoding="utf-8"))
        _check(path, script)
        return Markup(script)  # noqa: S704 - a file of the theme, as its templates are

    return read


def _check(path: Path, script: str) -> None:
    source = hash_source(script)
    if source not in INLINE_SCRIPTS:
        raise BuildError(
            f"{path} was changed, and browsers run what stands in a page only by its hash; write "
            f'"{source}" into INLINE_SCRIPTS of edge_api/schema/site_policy.py'
        )


def hash_source(script: str) -> str:
    """Return the hash by which a policy names a script (CSP level 3, section 2.3.1)."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
