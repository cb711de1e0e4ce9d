"""Environment variables and `.env` files. Messages and printed values contain no password."""

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from importlib.metadata import distributions
from io import StringIO
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from dotenv import dotenv_values
from dotenv.parser import parse_stream

VERSION: Final = "1.1.0"
"""The version of both programs, and of their release."""
MAX_PORT: Final = 65535
_IS_INSTALLED = any(distributions(name="fore-edge"))
EDGE: Final = "fore-edge" if _IS_INSTALLED else "python -m edge_api"
BUILD: Final = "fore-edge" if _IS_INSTALLED else "python -m site_build"
"""The beginning of command lines of each program: installed, or run as a module in a checkout."""

LITESTREAM_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "LITESTREAM_", "OSS_", "NATS_", "WEBDAV_")
"""Prefixes of Litestream's variables for credentials."""


def read_origin(text: str) -> str:
    """Return an HTTP origin unchanged if it is as browsers send it (RFC 6454, section 6.2).

    It has a scheme, a host and perhaps a port, in lower case and without a slash at the end; a host
    name beyond ASCII is in its `xn--` form. Raises ValueError with what to fix.
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


PRIVATE_PREFIX, PUBLIC_PREFIX = "fe_build_private_", "fe_build_public_"
"""The beginnings of the keys that builds are signed and verified with."""


def read_bucket(text: str) -> str:
    """Return the address of a bucket unchanged. Raises ValueError for what cannot be one."""
    remote = r"(s3|gs|az)://[^/?#@\s]+(/[^?#]*)?"
    if re.match(r"[a-z0-9+.-]+:", text) and not re.fullmatch(rf"{remote}|file:///[^?#]+", text):
        raise ValueError("must be a folder, or like s3://bucket/path, gs://bucket, az://container")
    return text


def read_key(text: str, prefix: str = PUBLIC_PREFIX) -> bytes:
    """Return the 32 bytes of a key. Raises ValueError with what to fix."""
    found = re.fullmatch(rf"{prefix}([\w-]{{43}})", text, re.ASCII)
    if found is None:
        raise ValueError(f"must be {prefix} and 43 characters, as `push --new-key` prints it")
    return urlsafe_b64decode(f"{found[1]}=")


class SettingsError(Exception):
    """Settings, or the file that has them, are invalid; `errors` has a sentence for each fault."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        super().__init__("; ".join(errors))


def read_dotenv(path: Path, *, lenient: bool = False) -> Mapping[str, str]:
    """Return the variables of a `.env` file by name; empty without it. Raises SettingsError.

    `lenient` leaves out the lines that are none.
    """
    if not path.exists():
        return {}
    try:
        text = path.read_text("utf-8", "replace" if lenient else "strict")
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
    if broken and not lenient:
        raise SettingsError(broken)
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(text)).items()}


def read_variables(
    path: Path, environment: Mapping[str, str], *, lenient: bool = False
) -> dict[str, str]:
    """Return the variables of a `.env` file and of the environment, which wins.

    Of the environment of a demonstration only PORT counts: no setting of a real journal, such as
    its store or its relay, may reach one. Raises SettingsError.
    """
    found = read_dotenv(path, lenient=lenient)
    is_demo = found.get("DEMO") == "on"
    given = {
        name: value
        for name, value in environment.items()
        if name == "PORT" or not (is_demo or name == "DEMO")
    }
    return {**found, **given}


def read_boolean(text: str) -> bool:
    """Return the value of a boolean variable. Raises ValueError."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise ValueError("must be true or false")
    return words[text.lower()]


_SQLITE_SCHEME: Final = "sqlite:///"
URL_CHARACTER: Final = "(?:[!$&'()*+,;=A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})"
"""A character of a user, a password or a name (RFC 3986, section 3.2.1)."""
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+)(?::[0-9]{1,5})?"
_POSTGRESQL_URL: Final = re.compile(
    rf"(?P<scheme>postgres(?:ql)?://)"
    rf"(?:(?P<user>{URL_CHARACTER}+)(?P<password>:{URL_CHARACTER}*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)?"
    rf"(?P<name>/{URL_CHARACTER}+)"
    r"(?:\?(?P<options>[!-\"$-~]*))?"
)
"""A URL as libpq accepts it; only the name of the database is required."""
_HIDDEN: Final = "(hidden)"


def read_database(text: str) -> str:
    """Return the URL of a store unchanged, validated. Raises ValueError with what to fix."""
    if text.startswith(_SQLITE_SCHEME) and text != _SQLITE_SCHEME and "\0" not in text:
        return text
    found = _POSTGRESQL_URL.fullmatch(text)
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
    return Path(url.removeprefix(_SQLITE_SCHEME)) if url.startswith(_SQLITE_SCHEME) else None


def redact_database(url: str) -> str:
    """Return the URL of a store with every password hidden."""
    found = _POSTGRESQL_URL.fullmatch(url)
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
