"""What the origin of a site may look like: one rule for the edge and for the site build."""

import re
from typing import Final

PORT_MOST: Final = 65535

_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_ORIGIN = re.compile(
    rf"https?://(?P<host>{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?"
)


def read_origin(text: str) -> str:
    """Return an HTTP origin as browsers send it (RFC 6454, section 6.2), checked.

    Scheme, host and perhaps a port, in lower case and without a slash behind them; a name beyond
    ASCII stands in its `xn--` form. Raises ValueError with what to mend.
    """
    found = _ORIGIN.fullmatch(text)
    if found is None:
        raise ValueError("must be an origin such as https://example.org, without a path or slash")
    if found["port"] and not 1 <= int(found["port"]) <= PORT_MOST:
        raise ValueError(f"must have a port from 1 to {PORT_MOST}")
    return text
