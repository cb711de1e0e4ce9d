"""The person whom data is about (GDPR, Article 4(1)), as the store knows them: by an address.

It recognises that address however it is spelt, alone or in a text. Where texts come from is not
known here.
"""

import re
from typing import Final
from unicodedata import normalize

from edge_api.domain.email_address import fold_address

_BESIDE: Final = r'\s<>"(),:;\[\]{}'
_ADDRESS: Final = re.compile(rf"[^{_BESIDE}]+@[^{_BESIDE}]+")
_AROUND: Final = "'`.!?\\"
"""What may stand next to an address in a text and is no part of it."""


class DataSubject:
    """Recognises one person's address."""

    def __init__(self, address: str) -> None:
        self.address = _fold(address)
        self.is_valid = _is_valid(address)

    def is_at(self, text: str) -> bool:
        """Tell whether a text is the address and nothing else."""
        return _fold(text) == self.address

    def is_in(self, text: str) -> bool:
        """Tell whether a text is the address, or has it somewhere within."""
        if self.is_at(text):
            return True
        return any(
            _fold(found[0].strip(_AROUND)) == self.address for found in _ADDRESS.finditer(text)
        )


def _is_valid(text: str) -> bool:
    try:
        fold_address(text)
    except ValueError:
        return False
    return True


def _fold(text: str) -> str:
    """Return the one spelling of an address; rows written by hand may hold what is none."""
    bare = normalize("NFC", text.strip())
    try:
        return fold_address(bare)
    except ValueError:
        return bare.lower()
