"""Failures of SMTP in the words of the domain: who said no, at which stage, with which codes.

A relay's own words stay here. They may have the address in them, or a piece of the message.
"""

import re
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from aiosmtplib import SMTPException, SMTPResponseException, SMTPServerDisconnected

from edge_api.domain.mail.transport import Refused, Stage

FAULTS: Final = (SMTPException, OSError)
"""What opening, speaking and waiting can raise; a TimeoutError is an OSError."""

_ENHANCED: Final = re.compile(r"([245])\.\d{1,3}\.\d{1,3}(?![\d.])")
"""RFC 2034, section 4: the enhanced code stands before a reply's text."""
_CODES: Final = range(200, 600)
_WHAT: Final[Mapping[Stage, str]] = MappingProxyType(
    {
        "connect": "the connection",
        "login": "the login",
        "sender": "the sender",
        "recipient": "the recipient",
        "data": "the message",
    }
)


def refusal(stage: Stage, fault: BaseException, seconds: float) -> Refused:
    """Return what a fault at a stage is to the domain. `seconds` is how long was waited."""
    if isinstance(fault, SMTPResponseException) and fault.code in _CODES:
        return _answered(stage, fault.code, fault.message)
    if stage == "login" and isinstance(fault, SMTPServerDisconnected):
        return Refused("login", None, "", "the relay closed the connection at the login")
    return Refused("connect", None, "", _silence(fault, seconds))


def _answered(stage: Stage, code: int, words: str) -> Refused:
    found = _ENHANCED.match(words)
    enhanced = found[0] if found and found[1] == str(code)[0] else ""
    codes = f"{code} {enhanced}".rstrip()
    return Refused(stage, code, enhanced, f"the relay refused {_WHAT[stage]}: {codes}")


def _silence(fault: BaseException, seconds: float) -> str:
    """Say why there is no answer; the library wraps some causes, and some not."""
    for cause in (fault.__cause__, fault):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "the relay's certificate is not to be trusted"
        if isinstance(cause, ssl.SSLError):
            return "the relay and this machine found no way to speak TLS"
        if isinstance(cause, TimeoutError):
            return f"the relay did not answer within {seconds:g} s"
    if isinstance(fault, SMTPResponseException):
        return "the relay answered what is no SMTP"
    return "the relay cannot be reached, or closed the connection"
