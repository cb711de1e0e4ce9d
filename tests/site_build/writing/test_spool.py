"""The spool: records appear in one step."""

from datetime import UTC, datetime
from pathlib import Path

from edge_api.schema.writing import Spool, WriteRequest


def test_a_request_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    """Half a record has another name; taken away, the edge could not finish it."""
    spool, at = Spool(tmp_path), datetime(2026, 6, 1, tzinfo=UTC)
    name = spool.put(WriteRequest(operation="list", author="", may_publish=False, asked_at=at))
    partial = spool.folder / "other.request.partial"
    partial.write_text("{")
    assert [found for found, _ in spool.claim()] == [name]
    assert partial.exists()
