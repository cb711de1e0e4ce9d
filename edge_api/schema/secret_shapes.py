"""The shapes of the secrets that the service hands out: a prefix each, and the same body.

The build publishes their regular expression, by which scanners find a secret that lies open.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

SecretKind = Literal[
    "api_key",
    "access_token",
    "client_secret",
    "refresh_token",
    "authorization_code",
    "claim_token",
]

PREFIXES: Mapping[SecretKind, str] = MappingProxyType(
    {
        "api_key": "fe_sk_",
        "access_token": "fe_mt_",
        "client_secret": "fe_cs_",
        "refresh_token": "fe_rt_",
        "authorization_code": "fe_ac_",
        "claim_token": "fe_cl_",
    }
)
assert tuple(PREFIXES) == get_args(SecretKind)  # noqa: S101  one list, stated twice for the type

RANDOM_WIDTH = 43
"""Digits that 256 random bits take in base 62."""
CHECK_WIDTH = 6
"""Digits that the 32 bits of a CRC-32 take in base 62."""
BODY_PATTERN = f"[0-9A-Za-z]{{{RANDOM_WIDTH + CHECK_WIDTH}}}"
SECRET_PATTERN = f"({'|'.join(PREFIXES.values())}){BODY_PATTERN}"
"""Finds any of them in a text; in the words that every dialect of regular expressions knows."""
