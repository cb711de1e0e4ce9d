"""A program that runs many commands of the edge in one process, as `python -m edge_api` would.

It reads a JSON array of command lines, and prints an array of what each of them printed. Starting a
process for each takes longer than all of them together.
"""

import json
import runpy
import sys
from contextlib import redirect_stdout
from io import StringIO


def main() -> None:
    """Run the commands; end with the exit code of the first that fails."""
    printed = []
    for words in json.load(sys.stdin):
        sys.argv = ["edge_api", *words]
        said = StringIO()
        try:
            with redirect_stdout(said):
                runpy.run_module("edge_api", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code:
                raise
        printed.append(said.getvalue())
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    main()
