"""What a relay's refusal means for the message, and for the address it was for.

One table, read from its top: the first rule that fits is the verdict. Only a refusal that says
that there is no such mailbox counts against an address; a policy speaks of us, or of the message.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

from edge_api.domain.mail.transport import Refused, Stage

Verdict = Literal["retry", "greylisted", "rate_limited", "bounced", "refused", "login"]
"""Later; not before five minutes; all mail later; never, nor to this address; never this message;
later, once an operator has mended the password."""

_EVERY_STAGE: Final[tuple[Stage, ...]] = get_args(Stage)
_ABOUT_US: Final[tuple[Stage, ...]] = ("connect", "login", "sender")
"""Where a relay has seen nothing yet but who we are."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fits a refusal whose stage, code and enhanced code all fit."""

    verdict: Verdict
    code: str = ".*"
    """A pattern for the three digits; without an answer they are empty."""
    enhanced: str = ".*"
    stages: tuple[Stage, ...] = _EVERY_STAGE

    def fits(self, refused: Refused) -> bool:
        code = "" if refused.code is None else str(refused.code)
        return (
            refused.stage in self.stages
            and re.fullmatch(self.code, code) is not None
            and re.fullmatch(self.enhanced, refused.enhanced) is not None
        )


_RULES: Final = (
    _Rule("rate_limited", "421|454", r"4\.7\.\d+"),
    _Rule("rate_limited", "429"),
    # Said to a recipient or a message it may be about that one alone, which must not stop others.
    _Rule("rate_limited", "450|451|452", r"4\.7\.\d+", stages=_ABOUT_US),
    _Rule("login", "530|534|535|538", stages=_ABOUT_US),
    _Rule("login", stages=("login",)),
    # A relay that is closed refuses nobody's message (554 in a greeting, RFC 5321, section 3.1).
    _Rule("retry", stages=("connect",)),
    _Rule("greylisted", "450|451|452", r"4\.7\.\d+", stages=("recipient", "data")),
    _Rule("greylisted", "450|451", stages=("recipient",)),
    # Not 5.1.0, 5.1.7, 5.1.8 and 5.1.9: they are about the sender or the way as well, and relays
    # say what they think of a sender when a recipient is named.
    _Rule("bounced", r"5\d\d", r"5\.1\.([1-6]|10)", stages=("recipient",)),
    _Rule("bounced", "550|551|553", r"5\.1\.([1-6]|10)", stages=("data",)),
    _Rule("refused", r"5\d\d"),
    _Rule("refused", "", r"5\.\d+\.\d+"),
    _Rule("retry"),
)
"""RFC 5321, section 4.2; RFC 3463, section 3; RFC 4954, section 6; RFC 7505, section 4."""


def judge(refused: Refused) -> Verdict:
    """Return what a refusal means."""
    return next(rule.verdict for rule in _RULES if rule.fits(refused))
