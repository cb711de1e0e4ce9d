"""Saved replies: texts for answers to leads, kept as Markdown files beside the store.

A file is written beside its place and renamed, so that a full disk leaves the former text. Links
are not followed, neither to read nor to write.
"""

import fcntl
import os
import re
from asyncio import to_thread
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import audit_entry
from edge_api.db.internal_tables import LEAD_MESSAGES
from edge_api.db.tables import LEADS
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.operation.input import FormErrors, TextRule
from edge_api.settings import Settings

MAX_REPLIES: Final = 100
MAX_TEXT: Final = 20_000  # characters of one
_NAME: Final = re.compile(r"\w[\w '\u2019,!?()&+-]{0,59}")
"""Letters, digits and some signs: no dot, and nothing that a path has a meaning for."""
_RULE: Final = TextRule(MAX_TEXT, "lines")
PATH: Final = "/desk/replies/"


def list_replies(settings: Settings) -> dict[str, str]:
    """Return the text of each saved reply by its name; a file that cannot be one is left out."""
    found: dict[str, str] = {}
    with suppress(OSError):  # no folder yet, or not ours
        for file in sorted(_folder(settings).iterdir()):
            is_ours = file.suffix == ".md" and _NAME.fullmatch(file.stem) and not file.is_symlink()
            if not is_ours or not file.is_file() or len(found) == MAX_REPLIES:
                continue
            with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as stream:
                text = stream.read(MAX_TEXT + 1)
                found |= {file.stem: text} if len(text) <= MAX_TEXT else {}
    return found


def digest(text: str) -> str:
    """Return what a form remembers of the text that it was made from; nothing of no text."""
    return sha256(text.encode()).hexdigest() if text else ""


def _folder(settings: Settings) -> Path:
    """Return the folder beside the store; with PostgreSQL, in `var` beside the builds."""
    store = settings.database_path
    return (store.parent if store else settings.build_dir.parent / "var") / "replies"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder, and let no other process change it meanwhile."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)  # so that the rename outlives the loss of power
    finally:
        os.close(descriptor)


def _store(settings: Settings, name: str, was: str, text: str | None) -> None:
    """Replace the reply whose text has the digest `was`; `None` deletes it. Raises FormErrors."""
    folder = _folder(settings)
    file, draft = folder / f"{name}.md", folder / f".{token_hex(8)}"
    try:
        with _locked(folder):
            replies = list_replies(settings)
            current = replies.get(name, "")
            if current != (text or "") and digest(current) != was:
                raise FormErrors(_say_change(name, was, current))
            if text is None:
                file.unlink(missing_ok=True)
                return
            if not current and (len(replies) >= MAX_REPLIES or file.is_symlink() or file.exists()):
                used = f"The file {file.name} is there already, and is no reply: use another name."
                full = f"{MAX_REPLIES} replies are the most: delete one first."
                raise FormErrors({"name": full if len(replies) >= MAX_REPLIES else used})
            with draft.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            draft.rename(file)
    except OSError as error:
        raise FormErrors({"form": f"Nothing was changed: {folder}: {error.strerror}."}) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _say_change(name: str, was: str, current: str) -> dict[str, str]:
    """Return the error of a form that was made from another text than is stored by now."""
    if not was:
        return {"name": f"There is a reply {name} already: choose another name."}
    said = f"Meanwhile this was changed to: {current}" if current else "Meanwhile it was deleted."
    return {"text": f"{said}\nWhat you typed is kept here; save again to replace it."}


async def show_replies(visit: Visit) -> Values:
    """Return all replies."""
    replies = await to_thread(list_replies, visit.service.settings)
    return {"replies": replies, "most": MAX_TEXT, "digest": digest}


async def save(visit: Visit) -> str:
    """Store a new reply, or another text for one."""
    errors, text = {}, ""
    name = " ".join(visit.typed.get("name", "").split())
    if not _NAME.fullmatch(name):
        errors["name"] = "Use 1 to 60 letters, digits, spaces and , ! ? ( ) & + - for a name."
    try:
        text = _RULE.clean(visit.typed.get("text", ""))
    except ValueError as error:
        errors["text"] = f"The text {error}."
    if errors:
        raise FormErrors(errors)
    return await _change(visit, name, text)


async def delete(visit: Visit) -> str:
    """Delete a reply, unless it has changed since it was shown."""
    name = visit.typed.get("name", "")
    return await _change(visit, name, None) if _NAME.fullmatch(name) else PATH


async def _change(visit: Visit, name: str, text: str | None) -> str:
    service, was = visit.service, visit.typed.get("was", "")
    await to_thread(_store, service.settings, name, was, text)
    verb = "delete reply" if text is None else "save reply"
    await service.store.run(audit_entry(visit.actor, verb, LEAD_MESSAGES, 1, service.clock()))
    return PATH


REPLIES: Final = Screen(PATH, "Saved replies", "replies", show_replies, LEADS.name)
SCREENS: Final = (REPLIES,)
ACTIONS: Final = (
    Action(PATH, REPLIES, save),
    Action(f"{PATH}delete/", REPLIES, delete),
)
