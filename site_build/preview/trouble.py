"""What is wrong, as the preview tells it: a place where there is one, and a sentence."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from site_build.post import Finding

_PLACED = re.compile(r"(?P<place>[^\s:]+:[0-9]+): (?P<message>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something to mend."""

    place: str
    """File, line and, where it is known, column; empty where there is no place."""
    message: str


def read_sentence(sentence: str) -> Trouble:
    """Return what a build's refusal says, its place apart."""
    found = _PLACED.fullmatch(sentence)
    return Trouble(_shorten(found["place"]), found["message"]) if found else Trouble("", sentence)


def read_finding(content: Path, finding: Finding) -> Trouble:
    """Return what a finding says, its path as seen from where the command runs."""
    place = f"{content / finding.path}:{finding.line}:{finding.column}"
    return Trouble(_shorten(place), finding.message)


def _shorten(place: str) -> str:
    """Return the place as seen from the working folder, where it lies below that."""
    here = f"{os.getcwd()}{os.sep}"  # noqa: PTH109 - a prefix of text
    return place.removeprefix(here)
