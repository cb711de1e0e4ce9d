"""What becomes of grants when that on which they stand changes, as plans."""

from edge_api.db.oauth_tables import OAUTH_GRANTS
from edge_api.db.query import Condition, Update


def end_grants(which: Condition, present: str) -> Update:
    """Return the plan that revokes grants, with all that they gave."""
    return Update(OAUTH_GRANTS, {"revoked_at": present}, (which, _IN_FORCE))


def hand_over_grants(old_key: str, new_key: str) -> Update:
    """Return the plan that puts the grants of a rotated key on its successor."""
    of_old = Condition("credential_id", "eq", old_key)
    return Update(OAUTH_GRANTS, {"credential_id": new_key}, (of_old, _IN_FORCE))


_IN_FORCE = Condition("revoked_at", "is", None)
