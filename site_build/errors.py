"""Defects of the content, and errors that stop a build, each in one plain sentence."""

import errno
import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

DISK_FULL_FIX: Final = "free some space on its disk, or raise its limits"
_FIXES: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), DISK_FULL_FIX),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "fix its permissions"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (ulimit -n)"),
    errno.ENOENT: "put it there, or try again if it was just moved or deleted",
}


def find_fix(refusal: OSError) -> str:
    """Return advice on how to fix an error of the file system."""
    return _FIXES.get(refusal.errno or 0, "check its path and its disk")


class Diagnostic(NamedTuple):
    """One defect of the content, with the place and the fix."""

    path: str
    line: int
    """Line number, from 1."""
    column: int
    """Column number, from 1, in code points."""
    severity: Literal["error", "warning"]
    message: str
    """The fault, and the fix."""

    @property
    def kind(self) -> str:
        """The kind of fault: the severity, and the message without its fix and particulars.

        Particulars are quoted texts, addresses, names of files, and numbers. A key of the front
        matter is a particular only if it is unknown.
        """
        unquoted = re.sub("^`([a-z_]+)`(?! is not a front matter key)", r"\1", self.message)
        particulars = r"`+[^`]*`+|'[^']*'|\"[^\"]*\"|\S*[/.]\w\S*|[0-9][0-9,]*"
        return f"{self.severity} {re.sub(particulars, '…', unquoted.partition('; ')[0])}"

    def __str__(self) -> str:
        """Return a line that the problem matchers of editors parse."""
        return f"{self.path}:{self.line}:{self.column}  {self.severity}  {self.message}"


class Held(NamedTuple):
    """A file that is held back because it has a fault."""

    path: str
    is_shown: bool
    """Whether readers see its former version."""
    finding: Diagnostic
    """The first of its faults; a warning if the file is only a draft."""


HELD_STATUS: Final = 3
"""The exit status of a build that is served although files have errors."""
_MOST_NAMED: Final = 10


def describe_held(held: Sequence[Held]) -> str:
    """Return a sentence about the files that a build holds back; there is at least one."""
    named = ", ".join(each.path for each in held[:_MOST_NAMED])
    more = f" and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
    former = sum(each.is_shown for each in held)
    has = "1 file has" if len(held) == 1 else f"{len(held)} files have"
    return (
        f"{has} errors: {named}{more}; "
        f"{former} shown in the former version, {len(held) - former} left out"
    )


class BuildError(Exception):
    """The build cannot go on; the message says why and what to do."""

    def __init__(self, message: str, exitcode: int = 1) -> None:
        super().__init__(message)
        self.exitcode = exitcode
        """The exit status; Pelican's own command reads it under this name."""


class BusyError(BuildError):
    """Another build is running in the same folder."""


class ContentError(BuildError):
    """The content has defects that a build must not publish; `findings` has them all."""

    def __init__(self, findings: tuple[Diagnostic, ...]) -> None:
        self.findings = findings
        errors = sum(1 for finding in findings if finding.severity == "error")
        warnings = len(findings) - errors
        super().__init__(
            f"nothing was built: {errors} error{'s' * (errors != 1)} and "
            f"{warnings} warning{'s' * (warnings != 1)} in the content"
        )
