"""Commits that are pushed to a server, taken into the journal's own repository and its folder.

They come as a pack, which waits in a folder of its own until all of it is checked: what is refused
leaves nothing. Files are written first, then the index, then the branch: after a kill the same push
finds its own files there, and goes on.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, NamedTuple

from edge_api.schema.writing import blob_id
from site_build.content.edits import rewrite
from site_build.content.sources import show_path
from site_build.writing.commits import NO_BLOB, Repository
from site_build.writing.versions import Refused

MAX_BYTES: Final = 256 * 1024 * 1024
"""Most bytes of a push, packed and unpacked."""
MAX_FILES: Final = 20_000
MAX_SECONDS: Final = 600
"""Most seconds until all of a push has come."""
_CHANGE: Final = rb":\d{6} (\d{6}) ([0-9a-f]{40}) ([0-9a-f]{40}) [A-Z]\d*\0([^\0]+)\0"
_STAGED: Final = rb"\d{6} ([0-9a-f]{40}) \d\t([^\0]+)\0"
_FILES: Final = r"(?:%s)(?:/(?![.])[^/]+)+"
"""Files in a folder, for `%`, whose names do not begin with a dot."""
_SPACES: Final = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Spaces of Unicode (category Zs), which some systems put into the names of screenshots."""
_MOST_NAMED: Final = 10


class _Change(NamedTuple):
    """A file that a push changes; a version of zeros is no file, and has the mode 000000."""

    mode: str
    former: str
    version: str
    path: str


class PushedRepository(Repository):
    """The journal's repository, as pushes change it."""

    def take(self, content: Path, pack: IO[bytes], *, is_trusted: bool) -> list[Path]:
        """Take a commit, whose id comes before its `pack`; return the files that it changes.

        A trusted push may also change what the site runs. Raises Refused, BuildError,
        OSError and ValueError.
        """
        commit, objects = bytes.fromhex(pack.read(40).decode()).hex(), self._git_dir / "objects"
        with TemporaryDirectory(dir=objects, prefix="tmp_objdir-push-") as name:
            apart = {"GIT_OBJECT_DIRECTORY": name, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{objects}"}
            self.git(
                "index-pack",
                "--strict",
                "--fix-thin",
                f"--max-input-size={MAX_BYTES}",
                "--stdin",
                source=pack,
                more=apart,
                seconds=MAX_SECONDS,
            )
            with self.lock():
                head = self.git("rev-parse", "HEAD").decode().strip()
                if self.git("rev-list", "-n1", head, f"^{commit}", "--", more=apart):
                    raise Refused(
                        "stale",
                        "the journal has commits that you lack; git pull --rebase, then push",
                    )
                raw = self.git(
                    "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", head, commit, more=apart
                )
                changes = [_Change(*map(os.fsdecode, each)) for each in re.findall(_CHANGE, raw)]
                allowed = _FILES % re.escape(self._name(content))
                if is_trusted:
                    allowed += rf"|pelicanconf\.py|{_FILES % 'theme|plugins'}"
                self._require_harmless(changes, allowed, apart)
                self._require_clean(changes)
                for each in sorted(Path(name).glob("pack/*"), reverse=True):  # the index comes last
                    each.replace(objects / "pack" / each.name)
                self._write(changes)
                self.git("update-ref", "-m", "push", "HEAD", commit, head)
        return [self._top / each.path for each in changes]

    def _require_harmless(
        self, changes: Sequence[_Change], allowed: str, apart: dict[str, str]
    ) -> None:
        _refuse(
            [each.path for each in changes if not _SPACES.sub(" ", each.path).isprintable()],
            "these names have invisible characters, or are not UTF-8; rename them",
        )
        _refuse(
            [
                each.path
                for each in changes
                if each.mode not in {"100644", "100755", "000000"}
                or not re.fullmatch(allowed, each.path)
            ],
            "a push brings files of the content alone, no links, no names that begin with a dot; "
            "settings, theme and plugins take deploy --trust-settings. These must go",
        )
        versions = "\n".join(each.version for each in changes if each.version != NO_BLOB)
        sizes = self.git(
            "cat-file", "--batch-check=%(objectsize)", given=versions.encode(), more=apart
        ).split()
        if len(changes) > MAX_FILES or sum(map(int, sizes)) > MAX_BYTES:
            raise Refused(
                "invalid",
                f"push {MAX_FILES:,} files and {MAX_BYTES // 1024**2} MiB at most at once",
            )

    def _require_clean(self, changes: Sequence[_Change]) -> None:
        """Raise Refused where the owner's own changes would be lost."""
        raw, blocked = self.git("ls-files", "--stage", "-z"), []
        staged = {os.fsdecode(path): version.decode() for version, path in re.findall(_STAGED, raw)}
        gone = {self._top / each.path for each in changes if each.version == NO_BLOB}
        for each in changes:
            place = self._top / each.path
            present = blob_id(place.read_bytes() if place.is_file() else None) or NO_BLOB
            is_clean = {present, staged.get(each.path, NO_BLOB)} <= {each.former, each.version}
            # A folder may become a file, and a file a folder, if the push removes what was there.
            others = [*filter(Path.is_file, place.parents)]
            others += [inner for inner in place.rglob("*") if not inner.is_dir()]
            is_hidden = place.resolve() != place or not gone.issuperset(others)
            if is_hidden or not is_clean:
                blocked.append(each.path)
        _refuse(
            blocked,
            "these were changed on the server, or are links or folders there; "
            "commit or undo that first",
        )

    def _write(self, changes: Sequence[_Change]) -> None:
        """Write the files and stage them."""
        for each in sorted(changes, key=lambda each: each.version != NO_BLOB):  # removals first
            place = self._top / each.path
            if each.version == NO_BLOB:
                place.unlink(missing_ok=True)
                with suppress(OSError):  # until a folder has other files
                    for folder in takewhile(
                        lambda folder: folder.parent != self._top, place.parents
                    ):
                        folder.rmdir()
            else:
                if place.is_dir():  # git knows no empty folders, and only such are left in it
                    for folder in (*sorted(place.rglob("*"), reverse=True), place):
                        folder.rmdir()
                before = place.read_bytes() if place.exists() else None
                rewrite(self._top, each.path, before, self.read(each.version))
                place.chmod(int(each.mode[-3:], 8))
        self.prepare_index(
            b"".join(os.fsencode(f"{e.mode} {e.version}\t{e.path}\0") for e in changes)
        )
        self.use_index()


def _refuse(paths: Sequence[str], reason: str) -> None:
    """Raise Refused if there are paths."""
    if paths:
        named = ", ".join(show_path(each) for each in paths[:_MOST_NAMED])
        rest = f" and {len(paths) - _MOST_NAMED} more" if paths[_MOST_NAMED:] else ""
        raise Refused("conflict", f"{reason}: {named}{rest}")
