"""Encryption of secrets in the store, so that the store alone does not give them away.

What is wrapped can be unwrapped with the service's secret alone.
"""

from hashlib import sha256

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey


class Wrapping:
    """Wraps what serves one purpose (JWE, RFC 7516: direct encryption with A256GCM)."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        # A key of its own kind: what leaks of one use of the secret says nothing about another.
        self._key = OctKey.import_key(sha256(purpose.encode() + b"\n" + secret).digest())

    def wrap(self, content: bytes) -> str:
        """Return the content encrypted, in ASCII."""
        return jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, content, self._key)

    def unwrap(self, wrapped: str) -> bytes:
        """Return what was wrapped. Raises ValueError where that was done with another secret."""
        try:
            return jwe.decrypt_compact(wrapped, self._key).plaintext or b""
        except JoseError:
            raise ValueError("was encrypted with another secret, or damaged") from None
