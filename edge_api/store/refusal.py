"""Why a store is not opened, for the person who starts the service."""


class StoreRefusal(Exception):  # noqa: N818  it refuses; nothing is broken in the code
    """The store cannot be used as it is; the message is one sentence with the mend."""
