"""The `pre-receive` hook of a server's bare repository: it hands a pushed commit to the journal.

It runs as the repository's user, who has no right to the journal. The journal, whose socket is the
argument, takes the commit, or says why not, before the branch of this repository moves.
"""

import socket
import subprocess
import sys
from typing import Final

ACCEPTED: Final = "\0"
"""Stands in an answer that accepts the push."""


def main() -> int:
    """Hand over the one commit that is pushed, print the answer; return 0 if it is accepted."""
    former, commit, *branches = sys.stdin.read().split()  # of a second line there would be more
    if branches != ["refs/heads/main"] or not commit.strip("0"):
        sys.stderr.write("refused: push to the branch main, and to no other: HEAD:main\n")
        return 1
    wanted = f"{commit}\n^{former}\n" if former.strip("0") else f"{commit}\n"
    words = ("git", "pack-objects", "--stdout", "--revs", "--thin", "--delta-base-offset", "-q")
    try:
        with socket.socket(socket.AF_UNIX) as journal:
            journal.connect(sys.argv[1])
            journal.sendall(commit.encode())
            subprocess.run(words, input=wanted.encode(), stdout=journal.fileno(), check=False)  # noqa: S603
            journal.shutdown(socket.SHUT_WR)
            said = journal.makefile(errors="replace").read()
    except OSError as error:
        said = f"refused: the journal does not answer ({error.strerror}); try again later\n"
    sys.stderr.write(said.replace(ACCEPTED, "") or "refused: the journal's log says why\n")
    return int(ACCEPTED not in said)


if __name__ == "__main__":
    sys.exit(main())
