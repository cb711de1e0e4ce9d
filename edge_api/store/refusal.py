"""Why a store is not opened, for the person who starts the service."""

from edge_api.schema.history import HISTORY


class StoreRefusal(Exception):  # noqa: N818  it refuses; nothing is broken in the code
    """The store cannot be used as it is; the message is one sentence with the mend."""


def refuse_newer(version: int, place: str) -> None:
    """Refuse a store that a later version of the edge has made. Raises StoreRefusal."""
    if version > len(HISTORY):
        raise StoreRefusal(
            f"{place} has schema version {version} and this edge knows {len(HISTORY)}: "
            "start the version that made it, or a later one"
        )


def no_store(where: str) -> StoreRefusal:
    """Return what to raise where a store should be and is none: `at` a path, `in` a database."""
    return StoreRefusal(f"there is no store {where}: serve, migrate or keys issue makes one")
