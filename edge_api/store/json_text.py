"""JSON columns: values outside, text in an engine that has no type for them."""

import json
from typing import Any

from edge_api.schema.problems import Problem


def write_json(value: Any) -> str:
    """Return the text of a value. Raises Problem `invalid` for what JSON cannot say (RFC 8259)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Problem("invalid", "the value cannot be written as JSON", sqlstate="22P02") from None


def read_json(text: str) -> Any:
    """Return the value of a text that `write_json` made."""
    return json.loads(text)
