"""Environment variables and `.env` files. Neither messages nor printed values have a password."""

import re
from collections.abc import Mapping
from importlib.metadata import distributions
from io import StringIO
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from dotenv import dotenv_values
from dotenv.parser import parse_stream

VERSION: Final = "1.0.1"
"""The version of both programs, which their releases have."""
MAX_PORT: Final = 65535
_IS_INSTALLED = any(distributions(name="fore-edge"))
EDGE: Final = "fore-edge" if _IS_INSTALLED else "python -m edge_api"
BUILD: Final = "fore-edge" if _IS_INSTALLED else "python -m site_build"
"""The words that start the commands of both programs: in a checkout nothing is installed."""

LITESTREAM_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "LITESTREAM_", "OSS_", "NATS_", "WEBDAV_")
"""Prefixes of Litestream's variables for credentials."""


def read_origin(text: str) -> str:
    """Return an HTTP origin as browsers send it (RFC 6454, section 6.2), checked.

    Scheme, host and perhaps a port, in lower case and without a slash behind them; a name beyond
    ASCII stands in its `xn--` form. Raises ValueError with what to fix.
    """
    label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
    found = re.fullmatch(
        rf"https?://(?:{label}(?:\.{label})*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?", text
    )
    if found is None:
        raise ValueError("must be an origin such as https://example.org, without a path or slash")
    if found["port"] and not 1 <= int(found["port"]) <= MAX_PORT:
        raise ValueError(f"must have a port from 1 to {MAX_PORT}")
    return text


class SettingsError(Exception):
    """One or more settings are wrong, or their file; `errors` has a sentence for each reason."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        super().__init__("; ".join(errors))


def read_dotenv(path: Path) -> Mapping[str, str]:
    """Return the variables by name, none if there is no file. Raises SettingsError."""
    if not path.exists():
        return {}
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise SettingsError([f"{path} is not UTF-8; save it in that encoding"]) from None
    except OSError as error:
        fault = f"{path} cannot be read ({error.strerror})"
        raise SettingsError([f"{fault}: run this as its owner, or let this user read it"]) from None
    broken = [
        f"{path}, line {binding.original.line}: write it like NAME=value"
        for binding in parse_stream(StringIO(text))
        if binding.error
    ]
    if broken:
        raise SettingsError(broken)
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(text)).items()}


def read_boolean(text: str) -> bool:
    """Return the value of a boolean variable. Raises ValueError."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise ValueError("must be true or false")
    return words[text.lower()]


_FILE: Final = "sqlite:///"
URL_CHARACTER: Final = "(?:[!$&'()*+,;=A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
"""A character of a user, a password or a name (RFC 3986, section 3.2.1)."""
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+)(?::[0-9]{1,5})?"
_SERVER: Final = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)"
    rf"(?:(?P<user>{URL_CHARACTER}+)(?P<password>:{URL_CHARACTER}*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)?"
    rf"(?P<name>/{URL_CHARACTER}+)"
    r"(?:\?(?P<options>[!-\"$-~]*))?"
)
"""As libpq takes it, of which one thing is needed: the database's name."""
_HIDDEN: Final = "(hidden)"


def read_database(text: str) -> str:
    """Return the URL of a store unchanged, validated. Raises ValueError with what to fix."""
    if text.startswith(_FILE) and text != _FILE and "\0" not in text:
        return text
    found = _SERVER.fullmatch(text)
    if found is None:
        raise ValueError(
            "must be sqlite:///path/to/file.db, or postgresql://user:password@host:port/database; "
            "in user and password write what is no letter or digit as %40 for @ and so on"
        )
    ports = re.findall(r":([0-9]+)(?:,|$)", found["hosts"] or "")
    if not all(1 <= int(port) <= MAX_PORT for port in ports):
        raise ValueError(f"must have a port from 1 to {MAX_PORT}")
    return text


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite store; `None` for PostgreSQL."""
    return Path(url.removeprefix(_FILE)) if url.startswith(_FILE) else None


def redact_database(url: str) -> str:
    """Return the URL of a store with every password hidden."""
    found = _SERVER.fullmatch(url)
    if found is None:
        return url
    user = found["user"] or ""
    password = f":{_HIDDEN}" if found["password"] else ""
    options = "&".join(map(_redact_option, (found["options"] or "").split("&")))
    return (
        f"{found['scheme']}{user}{password}{'@' if user else ''}{found['hosts'] or ''}"
        f"{found['name']}{'?' if options else ''}{options}"
    )


def _redact_option(option: str) -> str:
    name, _, _ = option.partition("=")
    return f"{name}={_HIDDEN}" if "password" in unquote(name).lower() else option
