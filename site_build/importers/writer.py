"""Writes a journal and its report in one step; a second import keeps what people changed."""

import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import yaml

from site_build.content.document import LARGEST_FILE
from site_build.errors import BuildError
from site_build.importers.imported import Imported
from site_build.text import strip_control_characters

REPORT: Final = "import-report.json"
"""The report for programs. By its digests the next import recognizes the files of this one."""
READABLE_REPORT: Final = "import-report.md"
"""The report for people: what was left out and changed."""
STARTER: Final = Path(__file__).resolve().parents[1] / "starter"
MOST_LISTED: Final = 10
"""The findings of one kind that are listed for people; the others are counted."""


class Summary(NamedTuple):
    """Numbers of texts that were found and imported, and the addresses and files to look at."""

    posts: int
    found: int
    """The number of posts, including those that were left out."""
    drafts: int
    pages: int
    addresses: list[str]
    """Old addresses of what was public."""
    missing: list[str]
    """Old addresses that nothing answers."""
    needing: list[str]
    """Files of the old journal that were changed or left out."""

    def __str__(self) -> str:
        old = len(self.addresses)
        return (
            f"{self.posts:,} of {self.found:,} posts · {old - len(self.missing):,} of {old:,} old "
            f"addresses answer · {len(self.needing):,} files need you"
        )


def fill_starter(name: str, **values: str) -> bytes:
    """Return a file of `starter/` with its values filled in."""
    text = (STARTER / name).read_text(encoding="utf-8")
    return Template(text).substitute(values).encode()


def strip_unwritable(text: str) -> str:
    """Return a text without control characters and lone surrogates."""
    return strip_control_characters(text.encode(errors="replace").decode())


def dump_head(head: dict[str, Any]) -> bytes:
    """Return a file's front matter: each list on one line, an instant at midnight as its date."""
    lines = (
        yaml.dump(
            {name: value.date() if str(value).endswith(" 00:00:00") else value},
            Dumper=yaml.CSafeDumper,
            allow_unicode=True,
            width=LARGEST_FILE,
            default_flow_style=None if isinstance(value, list) else False,
        )
        for name, value in head.items()
        if value
    )
    return f"---\n{''.join(lines)}---\n".encode(errors="replace")


def write_journal(
    folder: Path,
    files: Mapping[str, bytes | Path],
    result: tuple[Imported, Summary] | None = None,
) -> list[str]:
    """Write files by their paths below a folder, all or, if the folder is new, none of them.

    With the `result` of an import, both reports are written too. Then, in the folder of an earlier
    import, only files are replaced that still are as it wrote them: files that a person changed or
    removed are left as they are, and their paths returned. Raises BuildError and OSError.
    """
    known: dict[str, str] = {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        known |= json.loads((folder / REPORT).read_bytes())["digests"] if result else {}
    # Names come from exports, and from a report that somebody else may have written.
    if astray := [e for e in (*files, *known) if e.startswith("/") or ".." in e.split("/")]:
        raise BuildError(
            f"{astray[0]!r} is not below {folder}; rename that text, or remove {folder / REPORT}"
        )
    names = dict.fromkeys(name.split("/")[0] for name in files) if result else files
    if not known and (taken := [name for name in names if os.path.lexists(folder / name)]):
        raise BuildError(
            f"{folder} already has {', '.join(taken)}; choose another folder, or move them away"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # In or beside the folder, so that renaming works. A killed import leaves only this behind.
    place = folder if folder.is_dir() else folder.parent
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=place) as made:
        home = Path(made, "journal")
        _write_files(home, files)
        digests = {name: _digest(home / name) for name in files}
        now = {name: _digest(folder / name) for name in {**files, **known}}
        # The digest of a missing file is empty: no change if it is new, else a person removed it.
        kept = [name for name in files if now[name] not in {known.get(name, ""), digests[name]}]
        digests |= {name: known.get(name, "") for name in kept}
        gone = sorted(name for name in known.keys() - files.keys() if now[name] == known[name])
        # An export may have several parts, each without the texts of the others.
        known_texts, gone_texts = (
            sum(name.endswith(".md") for name in names) for names in (known, gone)
        )
        if gone_texts > known_texts / 2:
            raise BuildError(
                f"{folder} has an import of texts most of which are not in this journal; put all "
                "exports into one folder and import that, or choose another DIR"
            )
        reports = _render_reports(*result, digests, kept, gone) if result else {}
        _write_files(home, reports)
        if not os.path.lexists(folder):
            home.rename(folder)
            return kept
        for name in [*(name for name in files if name not in kept), *reports]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).replace(folder / name)
        for name in gone:
            (folder / name).unlink(missing_ok=True)
    return kept


def _render_reports(
    imported: Imported,
    summary: Summary,
    digests: Mapping[str, str],
    kept: list[str],
    gone: list[str],
) -> dict[str, bytes]:
    """Return both reports by name.

    `digests` are those of written files, `kept` the files not written, and `gone` those removed.
    """
    counts = {
        "drafts": summary.drafts,
        "pages": summary.pages,
        "members": len(imported.members),
        "comments": len(imported.comments),
    }
    lines = [f"# What came over from {imported.system}", "", f"{summary}.", ""]
    lines += [f"- {number:,} {name}" for name, number in counts.items() if number]
    groups = defaultdict[str, list[str]](list)
    # What is missing comes first.
    for each in sorted(imported.findings, key=lambda e: (e.kind, e.fix), reverse=True):
        place = f"`{each.source}{f':{each.line}' * bool(each.line)}`: " * bool(each.source)
        groups[f"{each.kind}: {each.fix}"].append(f"{place}{each.what}")
    groups["addresses that nothing answers"] += [f"`{name}`" for name in summary.missing]
    groups["files that you changed or removed, and that stayed so"] += [f"`{e}`" for e in kept]
    groups["files removed, since the old journal has them no more"] += [f"`{e}`" for e in gone]
    for heading, found in groups.items():
        lines += ["", f"## {len(found):,} {heading}", ""] if found else []
        lines += [f"- {each}" for each in found[:MOST_LISTED]]
        lines += (
            [f"- and {len(found) - MOST_LISTED:,} more, in {REPORT}"] if found[MOST_LISTED:] else []
        )
    data = {
        "system": imported.system,
        **summary._asdict(),
        **counts,
        "kept": kept,
        "removed": gone,
        "findings": [asdict(each) for each in imported.findings],
        "digests": digests,
    }
    return {
        READABLE_REPORT: ("\n".join(lines) + "\n").encode(errors="replace"),
        REPORT: json.dumps(data, ensure_ascii=False, indent=1).encode(errors="replace"),
    }


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; an empty string where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write_files(home: Path, files: Mapping[str, bytes | Path]) -> None:
    for path, content in ((home / name, content) for name, content in files.items()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600 if path.name in {".env", "members.csv", "comments.json"} else 0o666)
        shutil.copyfile(content, path) if isinstance(content, Path) else path.write_bytes(content)
