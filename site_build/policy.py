"""What the people of a site let programs do with its words, and where they hear of a hole in it.

The settings for that, checked; what is made of them is not known here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from edge_api.schema.dotenv_file import read_boolean
from site_build.faults import BuildError

DEFAULT_SIGNALS: Mapping[str, bool] = MappingProxyType(
    {"search": True, "ai-input": True, "ai-train": False}
)
"""By the names of contentsignals.org: being found, being quoted to somebody who asks, and being
learnt from for good. The last can be allowed at any time and never taken back."""

_CONTACT = re.compile(r"(?:mailto:[^\s@]+@[^\s@]+|https://\S+|tel:\+?[0-9-]+)")


@dataclass(frozen=True, slots=True)
class Policy:
    """What is allowed, and whom to tell."""

    signals: Mapping[str, bool] = field(default_factory=lambda: DEFAULT_SIGNALS)
    """Every content signal, and whether that use is allowed."""
    security_contact: str = ""
    """A URI to which a vulnerability is reported; empty: the contact page."""
    leads_need_credential: bool = False
    """Whether the edge takes leads from holders of a credential alone."""


def read_policy(settings: Mapping[str, object]) -> Policy:
    """Return what the settings say of programs; raises BuildError."""
    signals = settings.get("CONTENT_SIGNALS", {})
    contact = settings.get("SECURITY_CONTACT") or ""
    if not isinstance(signals, Mapping) or not all(
        name in DEFAULT_SIGNALS and isinstance(allowed, bool) for name, allowed in signals.items()
    ):
        names = ", ".join(DEFAULT_SIGNALS)
        raise BuildError(f"CONTENT_SIGNALS has to give True or False for each of {names}")
    if contact and not (isinstance(contact, str) and _CONTACT.fullmatch(contact)):
        raise BuildError(
            f"SECURITY_CONTACT is {contact!r}; write mailto:, https:// or tel: before the address"
        )
    try:
        closed = read_boolean(str(settings.get("LEADS_REQUIRE_CREDENTIAL", "false")))
    except ValueError as error:
        raise BuildError(f"LEADS_REQUIRE_CREDENTIAL {error}") from None
    return Policy({**DEFAULT_SIGNALS, **signals}, str(contact), closed)
