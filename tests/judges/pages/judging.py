"""Runs the official programs on files and addresses, and returns what they say as values."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.judges import node
from tests.judges.pages.served import Served

HERE = Path(__file__).parent
Faults = list[dict[str, Any]]


async def ask(script: str, *words: str, folder: Path) -> Any:
    """Run one of the scripts beside this module and return its JSON."""
    outcome = await node.run(HERE / script, *words, folder=folder)
    assert outcome.status == 0, str(outcome)
    return json.loads(outcome.said)


def lay_out(pages: Mapping[str, bytes], folder: Path) -> Path:
    """Write pages into a folder, each under a name that says which page it is; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, html in pages.items():
        (folder / f"{re.sub('[^a-z0-9]+', '_', name.lower())}.html").write_bytes(html)
    return folder


async def judge_markup(pages: Mapping[str, bytes], folder: Path) -> Faults:
    """Return what html-validate finds in pages, which are laid out in `folder`."""
    found = await ask("markup.mjs", str(lay_out(pages, folder / "pages")), folder=folder)
    return list(found)


async def follow_links(served: Served, *starts: str, folder: Path) -> tuple[int, Faults]:
    """Return how many links were followed from these paths on, and those that are broken."""
    found = await ask("links.mjs", served.origin, *starts, folder=folder)
    return int(found["checked"]), list(found["broken"])


async def judge_headers(
    answers: Iterable[Mapping[str, Any]], folder: Path
) -> list[tuple[int, Mapping[str, int]]]:
    """Return score and the results that moved it, an answer each."""
    file = folder / "answers.json"
    file.write_text(json.dumps(list(answers)), encoding="utf-8")
    found = await ask("observatory.mjs", str(file), folder=folder)
    return [
        (each["score"], {result: points for result, points in each["results"] if points})
        for each in found
    ]
