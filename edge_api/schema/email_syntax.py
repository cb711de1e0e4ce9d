"""The syntax of e-mail addresses, as `email-validator` checks it, with two bounds moved.

Nothing is asked of the DNS: whether mail arrives is found out by sending it.
"""

import email_validator
from email_validator import EmailNotValidError, ValidatedEmail, syntax, validate_email

from edge_api.schema.tables import EMAIL_LONGEST

# Addresses in .test, .invalid and their like are taken: test rigs send from them. They are no
# reason to refuse a lead, only one to send nothing there.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
# The library stops at the 254 of RFC 3696's erratum 1690; the published bound is one more.
syntax.EMAIL_MAX_LENGTH = EMAIL_LONGEST  # type: ignore[attr-defined]  # no public name


def check_address(address: str, *, bare_host: bool = False) -> ValidatedEmail:
    """Return what the library finds in an address. Raises ValueError for what is none.

    `bare_host` lets the domain be a name without a dot, such as `localhost`.
    """
    try:
        return validate_email(
            address, check_deliverability=False, globally_deliverable=not bare_host
        )
    except EmailNotValidError:
        raise ValueError("not a valid e-mail address") from None
