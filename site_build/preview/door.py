"""Who may look at a preview: whoever asks this machine for it by an address, or by its own name.

A page of somebody else's that has its own name lead here (DNS rebinding) would read drafts
otherwise.
"""

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from site_build.faults import BuildError

DEFAULT_PORT = 8001


class AddressError(BuildError):
    """The preview cannot listen where it was asked to."""

    exitcode = 2


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one. Raises AddressError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except socket.gaierror:
        raise AddressError(f"there is no host {host!r} here; try --host 127.0.0.1") from None
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else "it is no host"
        raise AddressError(
            f"the preview cannot listen on {host} port {port} ({reason}); "
            "name another with --port or --host"
        ) from None


def name_origin(listening: socket.socket) -> str:
    """Return the origin under which a browser finds the socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_loopback(listening: socket.socket) -> bool:
    """Tell whether only this machine can reach the socket."""
    return ip_address(listening.getsockname()[0]).is_loopback


def admits(host_header: str, chosen: str) -> bool:
    """Tell whether a request for this host may be answered; `chosen` is the host of `--host`."""
    try:
        host = urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return False
    with suppress(ValueError):
        ip_address(host)
        return True
    return host in {"localhost", chosen.lower()} or host.endswith(".localhost")
