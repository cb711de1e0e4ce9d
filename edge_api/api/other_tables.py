"""Any name below `admin/` that is no administrative table: refused, once the credential is known.

These operations are routed but are no entries of the OpenAPI document: each table has its own, and
the templated path stands there as a signpost.
"""

from typing import Any

from edge_api.api.operation import Ask, Operation
from edge_api.api.reply import Reply
from edge_api.api.service import Service
from edge_api.api.utility import PREFIX
from edge_api.schema.problems import Problem
from edge_api.schema.tables import ADMINISTRATIVE

PATH = f"{PREFIX}/admin/{{table}}"

SIGNPOST: dict[str, Any] = {
    "summary": "Row access to the administrative tables",
    "description": "Each table has a path of its own below, since their columns differ. "
    "Any other name answers 403, Table not allowed.",
    "parameters": [
        {
            "name": "table",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": list(ADMINISTRATIVE)},
        }
    ],
}


async def refuse(_service: Service, _ask: Ask) -> Reply:
    """Refuse the table."""
    raise Problem("table_not_allowed")


OPERATIONS: tuple[Operation, ...] = tuple(
    Operation(
        name=f"{method.lower()}_other_table",
        method=method,
        path=PATH,
        summary="Refuse a table that is not administrative",
        do=refuse,
        successes=(),
        credential="required",
        problems=("table_not_allowed",),
        dialect="postgrest",
    )
    for method in ("GET", "POST", "PATCH", "DELETE")
)
