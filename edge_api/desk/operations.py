"""Every screen and action of the desk, in the order of its navigation."""

from edge_api.desk import access, leads, records, sign_in, tables
from edge_api.desk.screens import operations
from edge_api.operation.model import AnyOperation

_PARTS = (leads, tables, access, records)
OPERATIONS: tuple[AnyOperation, ...] = (
    *sign_in.OPERATIONS,
    *operations(
        [each for part in _PARTS for each in part.SCREENS],
        [each for part in _PARTS for each in part.ACTIONS],
    ),
)
