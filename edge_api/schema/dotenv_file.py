"""What a `.env` file says: one reading of it for the edge and for the site build."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream


class DotenvError(Exception):
    """The file cannot be used; `faults` has a sentence for each reason."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("; ".join(faults))


def read_dotenv(path: Path) -> Mapping[str, str]:
    """Return the variables by name, none where there is no file. Raises DotenvError."""
    if not path.exists():
        return {}
    text = _read(path)
    broken = [
        f"{path}, line {binding.original.line}: write it like NAME=value"
        for binding in parse_stream(StringIO(text))
        if binding.error
    ]
    if broken:
        raise DotenvError(broken)
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(text)).items()}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise DotenvError([f"{path} is not UTF-8; save it in that encoding"]) from None
    except OSError as error:
        raise DotenvError([f"{path} cannot be read: {error.strerror}"]) from None


def read_boolean(text: str) -> bool:
    """Return what a variable that is true or false says. Raises ValueError."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise ValueError("must be true or false")
    return words[text.lower()]
