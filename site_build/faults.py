"""What stops a build, each in one plain sentence and with the exit code of the command.

Nothing here prints; whoever started the build does.
"""

from site_build.post import Finding


class BuildError(Exception):
    """The build cannot go on; the message says why and what to do."""

    exitcode = 1
    """The name that Pelican's own command looks for."""


class BusyError(BuildError):
    """Another build is at work in the same folder."""

    exitcode = 2


class ContentError(BuildError):
    """The content has defects that a build must not publish; `findings` has them all."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        errors = sum(1 for finding in findings if finding.severity == "error")
        warnings = len(findings) - errors
        super().__init__(
            f"nothing was built: {errors} error{'s' * (errors != 1)} and "
            f"{warnings} warning{'s' * (warnings != 1)} in the content"
        )
