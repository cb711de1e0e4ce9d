"""Moves real journals in and asks for what they had; `python -m` this rewrites the table in docs/.

Each journal of `shared/sites` is brought over by the product's own command, built, and served by
an edge of its own. Every address that it had is asked for over HTTP.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from tests.edge.edge_process import ROOT, Installation, ServedEdge, free_port
from tests.patience import patience
from tests.shared_material import SHARED, find_sites

SITES = SHARED / "sites"
PAGE = ROOT / "docs" / "moving-in.md"
NAMES = find_sites()
BROKEN = {"malformed.xml": 1, "missing-version-tag.xml": 0}
"""Exports of wxr-small that are refused, or that hold nothing."""
_WORD = re.compile(r"\w+")


@dataclass
class Figures:
    """Figures of the import of one journal."""

    posts: int = 0
    served: int = 0
    """Posts whose page was found, with their title on it."""
    addresses: int = 0
    answered: int = 0
    errors: int = 0
    """Errors of the build."""
    needing: int = 0
    """Files that the report names."""
    missed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        posts, addresses = f"{self.served} of {self.posts}", f"{self.answered} of {self.addresses}"
        addresses = addresses if self.addresses else "it had none"
        return f"{posts} | {addresses} | {self.errors} | {self.needing}"


def measure(name: str, folder: Path) -> Figures:
    """Move one journal into folders below `folder`; return the figures of all its exports."""
    expected = json.loads((SITES / name / "expected.json").read_text(encoding="utf-8"))
    source, figures = SITES / name / "source", Figures()
    exports = expected.get("files")
    for file in sorted(exports) if isinstance(exports, dict) and name == "wxr-small" else [""]:
        items = [each for each in expected["items"] if not file or each["source"] == file]
        # What the issue makes drafts does not count.
        items = [
            each
            for each in items
            if each["kind"] != "draft"
            and not each.get("password_protected")
            and each.get("visibility", "public") == "public"
        ]
        if items or file not in BROKEN:
            _move(source / file, folder / (file or "journal"), items, figures)
    return figures


def run_program(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `fore-edge` in a folder as its user does, with no setting."""
    program = "import sys; from site_build.__main__ import fore_edge; sys.exit(fore_edge())"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=patience(600),
    )


def _move(source: Path, journal: Path, items: list[dict[str, Any]], figures: Figures) -> None:
    journal.parent.mkdir(parents=True, exist_ok=True)
    made = run_program(journal.parent, "init", journal.name, "--from", str(source))
    assert made.returncode == 0, f"{made.stdout}\n{made.stderr}"
    built = run_program(journal, "build")
    figures.errors += len(re.findall(r": error:", built.stdout + built.stderr))
    assert built.returncode in (0, 3), f"{built.stdout}\n{built.stderr}"
    report = json.loads((journal / "import-report.json").read_text(encoding="utf-8"))
    figures.needing += len({each["source"] for each in report["findings"] if each["source"]})
    settings = {"PORT": str(free_port()), "DATABASE_URL": f"sqlite:///{journal}/var/edge.db"}
    with Installation(journal, settings).serving() as edge:
        places = _list_places(edge)
        for item in items:
            is_post = item["kind"] == "post"
            words = _WORD.findall(re.sub("<[^>]*>", "", item.get("title", "")).casefold())
            path = item.get("url", "")
            if path:
                shown = _follow(edge, path)
                figures.addresses += 1
                figures.answered += shown is not None
                if shown is None:
                    figures.missed.append(path)
            else:
                place = places.get(" ".join(words))
                shown = _follow(edge, place) if place else None
            figures.posts += is_post
            is_shown = shown is not None and set(words) <= set(_WORD.findall(shown))
            figures.served += is_post and is_shown
            if not is_shown:
                figures.missed.append(f"{path or item['source']}: {item.get('title')}")


def _list_places(edge: ServedEdge) -> dict[str, str]:
    """Return the paths of all posts by the words of their titles, from the site's own list."""
    listed = edge.get("/llms.txt")[2].decode()
    return {
        " ".join(_WORD.findall(title.replace("\\", "").casefold())): re.sub(
            r"^https?://[^/]+", "", address
        )
        for title, address in re.findall(r"^- \[(.*)\]\(([^)\s]+)\)", listed, re.MULTILINE)
    }


def _follow(edge: ServedEdge, path: str) -> str | None:
    """Return the words of the page that a path leads to, in small letters; None where none is."""
    at = quote(path, safe="/?=&%~:+,;@!$'()*")
    for _ in range(3):
        status, headers, body = edge.get(at)
        if status == 200:
            page = re.sub(r"<script.*?</script>|<[^>]+>", " ", body.decode(), flags=re.DOTALL)
            return unescape(page).casefold()
        if status not in (301, 302, 307, 308):
            return None
        at = re.sub(
            r"^https?://[^/]+", "", urljoin(f"http://journal.test{at}", headers["Location"])
        )
    return None


def write_row(name: str, figures: Figures) -> str:
    """Return the row of the table in docs/moving-in.md."""
    return f"| {name} | {figures} |"


if __name__ == "__main__":
    rows = []
    for each in sys.argv[1:] or NAMES:
        with tempfile.TemporaryDirectory() as place:
            found = measure(each, Path(place))
        rows.append(write_row(each, found))
        print(rows[-1], *found.missed[:20], sep="\n    ", flush=True)  # noqa: T201
    if not sys.argv[1:]:
        page = PAGE.read_text(encoding="utf-8")
        table = re.compile(r"(?<=\|---:\|---:\|---:\|---:\|\n)(\|.*\n)+")
        PAGE.write_text(table.sub("\n".join(rows) + "\n", page), encoding="utf-8")
