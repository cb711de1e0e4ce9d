"""Replaces what differs from play to play by names that do not: ids, secrets, instants, lengths.

Each distinct value is numbered by its first appearance in a walk, so that a value that comes back
is seen to come back.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

_PATTERNS = {
    "build": r"\b\d{8}T\d{6}Z-[0-9a-f]{12}\b",
    "seal": r"\b\d{10}\.[0-9a-f]{64}\b",
    "jwt": r"\beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]*)?",
    "credential": r"\bfe_[a-z]{2}_[0-9A-Za-z]{40,}",
    "uuid": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "instant": r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]00:?00)?",
    "minute": r"\b\d\d? [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC",
    "day": r"\b20\d\d-\d\d-\d\d\b",
    "date": r"\b\d\d? [A-Z][a-z]+ 20\d\d\b",
    "unix": r"\b[12]\d{9}\b",
    "coordinate": r'(?<="[xy]":")[\w-]{43}(?=")|(?<="[xy]": ")[\w-]{43}(?=")',
    "kid": r'(?<="kid":")[\w-]{43}(?=")|(?<="kid": ")[\w-]{43}(?=")',
    "signature": r"\bv1,[A-Za-z0-9+/]{43}=",
    "four": r'(?<="last_four":")\w{4}(?=")|(?<="last_four": ")\w{4}(?=")',
    "asset": r"(?<=\.)[0-9a-f]{12}(?=\.(?:js|css|svg|txt|woff2)\b)|(?<=pictures/)[0-9a-f]{12}(?=/)",
}
_ALL = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()))
_CHOSEN_ID = re.compile(r"[0-9a-f]0000000-")
"""The beginning of ids that a walk has chosen itself: they are kept."""
_EXAMPLE = "T09:30:00.000000Z"
"""The end of instants in the reference's examples. On some day they are now, or in a week."""
_TERMS: Mapping[str, timedelta] = {
    "now": timedelta(),
    "now+10m": timedelta(minutes=10),
    "now+1h": timedelta(hours=1),
    "now+1d": timedelta(days=1),
    "now+7d": timedelta(days=7),
    "now+14d": timedelta(days=14),
    "now+90d": timedelta(days=90),
    "now+1y": timedelta(days=365),
}
"""The times from now on for which the service makes things."""
_BEFORE = timedelta(minutes=30)
"""The largest age at the begin of a walk of a row that it meets."""
_MINUTES = timedelta(minutes=1, seconds=30)
"""The same for short terms: instants may be given in whole minutes."""
_AFTER = timedelta(minutes=5)
"""The longest time of a walk. Fixed instants of walks are years away."""


class Names:
    """The names that one walk has given."""

    def __init__(self, fixed: Mapping[str, str] | None = None) -> None:
        self._known: dict[str, str] = dict(fixed or {})
        self._counts: dict[str, int] = {}
        self._started = datetime.now(UTC)
        self._tokens: list[dict[str, str]] = []

    def learn(self, kind: str, value: str) -> str:
        """Return the name of a value, which is new or known, of some kind."""
        if value not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[value] = f"<{kind} {self._counts[kind]}>"
        return self._known[value]

    def apply(self, text: str) -> str:
        """Return a text with names for all that differs from play to play."""
        for value, name in self._known.items():
            if not name.startswith(("<uuid", "<jwt")) and value in text:
                text = text.replace(value, name)
        return _ALL.sub(self._name, text)

    def known(self, text: str) -> str:
        """Return a text with the names of ids that are known, and one name for all others."""
        kept = re.compile(_PATTERNS["uuid"])
        return kept.sub(lambda match: self._known.get(match[0], "<some uuid>"), text)

    def new_tokens(self) -> list[dict[str, str]]:
        """Return head and claims of each JWT that was named since this was last asked."""
        found, self._tokens = self._tokens, []
        return found

    def _name(self, match: re.Match[str]) -> str:
        kind, text = str(match.lastgroup), match[0]
        makers: Mapping[str, Callable[[str], str]] = {
            "build": lambda _: "<build>",
            "seal": lambda _: "<seal>",  # the same only within a second
            "kid": lambda value: self.learn("kid", value),
            "signature": lambda _: "<signature>",
            "four": lambda _: "<last four>",
            "asset": lambda _: "<hash>",
            "coordinate": lambda _: "<coordinate>",
            "credential": lambda value: self.learn(value[3:5], value),
            "uuid": lambda value: value if _CHOSEN_ID.match(value) else self.learn("uuid", value),
            "instant": self._instant,
            "minute": self._minute,
            "day": lambda value: self._day(value, "{:%Y-%m-%d}"),
            "date": lambda value: self._day(value, "{0.day} {0:%B} {0.year}"),
            "unix": self._unix,
            "jwt": self._jwt,
        }
        return makers[kind](text)

    def _instant(self, text: str) -> str:
        if text.endswith(_EXAMPLE):
            return text
        try:
            moment = datetime.fromisoformat(text.replace(" ", "T"))
        except ValueError:  # a day that no month has
            return text
        return self._term(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) or text

    def _minute(self, text: str) -> str:
        try:
            moment = datetime.strptime(text, "%d %b %Y, %H:%M UTC").replace(tzinfo=UTC)
        except ValueError:
            return text
        return self._term(moment) or text

    def _unix(self, text: str) -> str:
        term = self._term(datetime.fromtimestamp(int(text), UTC))
        return f"{term[:-1]} unix>" if term else text

    def _term(self, moment: datetime) -> str:
        for name, offset in _TERMS.items():
            before = _MINUTES if timedelta() < offset < _BEFORE else _BEFORE
            if -before < moment - self._started - offset < _AFTER:
                return f"<{name}>"
        return ""

    def _day(self, text: str, form: str) -> str:
        for name, offset in _TERMS.items():
            if offset.days or name == "now":
                moment = self._started + offset
                if text in {form.format(moment - _BEFORE), form.format(moment + _AFTER)}:
                    return f"<{name.replace('now', 'today')}>"
        return text

    def _jwt(self, text: str) -> str:
        is_new = text not in self._known
        name = self.learn("jwt", text)
        if is_new:
            head, claims = (_decode(part) for part in text.split(".")[:2])
            payload = self.apply(json.dumps({"head": head, "claims": claims}, sort_keys=True))
            self._tokens.append({name: payload})
        return name


def _decode(part: str) -> Any:
    """Return what a part of a JWT says; of a broken one, nothing."""
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return None
