"""The command line of the edge: `python -m edge_api COMMAND`."""

import sys
from collections.abc import Sequence

from edge_api.schema.commands import Program, Sections, run_program

COMMANDS: Sections = {
    "Serve": {
        "serve": ("edge_api.cli.serve", "serve the journal and its API", "--port 8000"),
        "migrate": (
            "edge_api.cli.migrate",
            "bring the store to the present schema, or create it; `serve` does so when it starts",
            "--print",
        ),
        "upgrade": (
            "edge_api.cli.upgrade",
            "back up the store and migrate it to this version, after a trial on a copy",
            "",
        ),
        "settings": (
            "edge_api.cli.settings",
            "print every setting with its value, secrets hidden",
            "",
        ),
        "doctor": (
            "edge_api.cli.doctor",
            "check settings, store, build, mail and file permissions; exit with 1 if one is wrong",
            "--deep",
        ),
    },
    "Answer people": {
        "leads": (
            "edge_api.cli.leads",
            "list, export, show and mark leads",
            "list --status new",
        ),
        "mail": (
            "edge_api.cli.mail",
            "send queued mail (without a subcommand); list, retry and preview it",
            "list",
        ),
        "newsletter": (
            "edge_api.cli.newsletter",
            "look at mailings, test, release, hold and resume them; move lists of subscribers",
            "status",
        ),
        "stats": (
            "edge_api.cli.stats",
            "print how many people and programs read the journal, and which pages",
            "--since 2026-11-01",
        ),
        "desk": (
            "edge_api.cli.desk",
            "print a link that signs in to the owner's pages",
            "link",
        ),
        "privacy": (
            "edge_api.cli.privacy",
            "export or erase what is stored about a person; `retain` deletes old rows",
            "export ann@example.org",
        ),
        "audit": (
            "edge_api.cli.audit",
            "list who changed what, newest first",
            "--limit 20",
        ),
    },
    "Give access": {
        "keys": (
            "edge_api.cli.keys",
            "issue, list, rotate and revoke API keys",
            'issue --name "my client"',
        ),
        "requests": (
            "edge_api.cli.requests",
            "list, approve and deny requests for access",
            "list",
        ),
        "clients": (
            "edge_api.cli.clients",
            "register, list, rotate and revoke OAuth clients",
            "list",
        ),
        "signing-keys": (
            "edge_api.cli.signing_keys",
            "list and rotate the keys that sign access tokens",
            "list",
        ),
        "webhooks": (
            "edge_api.cli.webhooks",
            "manage the addresses that are notified of leads, posts and changes of the site",
            "list",
        ),
    },
    "Keep the store": {
        "backup": (
            "edge_api.cli.backup",
            "make a verified copy of the store, also while it is in use",
            "--keep 7",
        ),
        "restore": (
            "edge_api.cli.restore",
            "replace the store with a backup; the replaced store is kept beside it",
            "var/backups/edge-20261121T063629Z.db",
        ),
        "copy": (
            "edge_api.cli.copy",
            "copy all rows of a store into another one, and compare them",
            "--from sqlite:///var/edge.db --to sqlite:///var/copy.db",
        ),
    },
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit status: 2 for wrong usage or settings, 1 for failure."""
    program = Program("Serve the journal and its API, and manage its store.", COMMANDS)
    return run_program(program, words, "python -m edge_api")


if __name__ == "__main__":
    sys.exit(main())
