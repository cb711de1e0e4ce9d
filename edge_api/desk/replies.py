"""Saved replies, kept as Markdown files beside the store.

A file is written under another name and renamed, so that a full disk leaves the former text.
Symbolic links are not followed, neither to read nor to write.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from edge_api.auth.actor import audit_entry
from edge_api.backup.files import write_private
from edge_api.db.tables import LEAD_MESSAGES, LEADS
from edge_api.desk.screens import Action, Screen, Values, Visit
from edge_api.operation.input import FormErrors, TextRule
from edge_api.settings import Settings

MAX_REPLIES: Final = 100
MAX_TEXT_LENGTH: Final = 20_000  # characters of a reply
_NAME: Final = re.compile(r"\w[\w '\u2019,!?()&+-]{0,59}")
"""Letters, digits and some punctuation: no dot, no slash, nothing else that paths interpret."""
_TEXT_RULE: Final = TextRule(MAX_TEXT_LENGTH, "lines")
PATH: Final = "/desk/replies/"


def list_replies(settings: Settings) -> dict[str, str]:
    """Return the text of each saved reply by its name; a file that is no valid one is left out."""
    found: dict[str, str] = {}
    with suppress(OSError):  # no folder yet, or not ours
        for file in sorted(_folder(settings).glob("*.md")):
            if _NAME.fullmatch(file.stem) and file.is_file() and not file.is_symlink():
                with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as stream:
                    text = stream.read(MAX_TEXT_LENGTH + 1)
                    found |= {file.stem: text} if len(text) <= MAX_TEXT_LENGTH else {}
    return found


def _folder(settings: Settings) -> Path:
    """Return the folder beside the store; with PostgreSQL, in `var` beside the builds."""
    store = settings.database_path
    return (store.parent if store else settings.build_dir.parent / "var") / "replies"


async def show_replies(visit: Visit) -> Values:
    """Return all replies."""
    return {"replies": list_replies(visit.service.settings), "most": MAX_TEXT_LENGTH}


async def save(visit: Visit) -> str:
    """Store or delete a reply, unless it has changed since the form was shown."""
    name, text = " ".join(visit.typed.get("name", "").split()), ""
    if not _NAME.fullmatch(name):
        raise FormErrors({"name": "Use 1 to 60 letters, digits, spaces and , ! ? ( ) & + -"})
    if "delete" not in visit.typed:
        try:
            text = _TEXT_RULE.clean(visit.typed.get("text", ""))
        except ValueError as error:
            raise FormErrors({"text": f"The text {error}."}) from None
    service, was = visit.service, visit.typed.get("was", "")
    # Nothing is awaited from here on, so that no other request comes in between.
    replies, folder = list_replies(service.settings), _folder(service.settings)
    file, current = folder / f"{name}.md", replies.get(name, "")
    if current == text:  # the button was pressed twice
        return PATH
    if current != was:
        said = f"changed to: {current}" if current else "deleted."
        kept = "What you typed is kept here; save again to replace it."
        raise FormErrors({"text": f"Meanwhile {name} was {said}\n{kept}"})
    if not current and len(replies) >= MAX_REPLIES:
        raise FormErrors({"name": f"{MAX_REPLIES} replies are the most: delete one first."})
    _write(file, text, is_new=not current)
    verb = "save reply" if text else "delete reply"
    await service.store.run(audit_entry(visit.actor, verb, LEAD_MESSAGES, 1, service.clock()))
    return PATH


def _write(file: Path, text: str, *, is_new: bool) -> None:
    """Replace a file, or delete it if there is no text. Raises FormErrors.

    A new reply replaces nothing: neither a link nor a file that is not a reply.
    """
    temporary = file.with_name(f".{token_hex(8)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not text:
            file.unlink(missing_ok=True)
        else:
            write_private(temporary, text.encode())
            (os.link if is_new else os.replace)(temporary, file)
    except OSError as error:
        raise FormErrors({"form": f"Nothing was changed: {file}: {error.strerror}."}) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


REPLIES: Final = Screen(
    PATH, "Saved replies", "replies", show_replies, LEADS.name, section="Settings"
)
SCREENS: Final = (REPLIES,)
ACTIONS: Final = (Action(PATH, REPLIES, save),)
