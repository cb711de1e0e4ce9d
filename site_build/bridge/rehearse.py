"""Drives Pelican for a preview: the usual round, often, and nothing written.

Templates are compiled once and kept as bytecode, since compiling takes longer than all the rest.
"""

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from site_build.bridge.plugin import contained, open_journal, plain_errors
from site_build.making.rehearsal import Earlier, Rehearsal
from site_build.progress import Request
from site_build.reading.gather import Gathered


class Rehearser:
    """Makes one rehearsal after the other, for one origin."""

    def __init__(self, site_url: str) -> None:
        self._site_url = site_url
        self._bytecode = _Bytecode()

    def rehearse(self, request: Request, gathered: Gathered, earlier: Earlier) -> Rehearsal:
        """Return the site that is made of `gathered`; raises BuildError."""
        with plain_errors(), contained():
            journal = open_journal(request, self._site_url)
            # A new value: the settings module's own one is kept by Pelican from run to run.
            journal.settings["JINJA_ENVIRONMENT"] = {
                **journal.settings["JINJA_ENVIRONMENT"],
                "bytecode_cache": self._bytecode,
            }
            rehearsal = Rehearsal(request, *journal.describe(), gathered, earlier)
            journal.execute(rehearsal)
        return rehearsal


class _Bytecode(BytecodeCache):
    """Compiled templates in memory; Jinja tells by a checksum when a source has changed."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket where its template is known."""
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled."""
        self._kept[bucket.key] = bucket.bytecode_to_string()
