"""What carries events to others, as far as the domain knows it: a request, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt."""

    status: int | None
    """`None` where no answer came."""
    sentence: str
    """Says what happened, without a word of what was sent or answered: it may be logged."""
    retry_after: str = ""
    """That header as it came (RFC 9110, section 10.2.3)."""

    @property
    def is_taken(self) -> bool:
        """Tell whether the event has arrived."""
        return self.status is not None and HTTPStatus(200) <= self.status < HTTPStatus(300)

    @property
    def is_refused_for_good(self) -> bool:
        """Tell whether the address wants no event any more."""
        return self.status == HTTPStatus.GONE


class Messenger(Protocol):
    """Posts what it is given to addresses that it may connect to."""

    async def check(self, url: str) -> None:
        """Return if `url` can be told anything at all. Raises Problem `invalid` that says why not.

        A name that leads nowhere yet is no fault: it is looked up again for each attempt.
        """

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Return what came of sending the body once; whatever happens is an answer."""
