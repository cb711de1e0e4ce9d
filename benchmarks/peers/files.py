"""A folder of files, served as aiohttp itself does it: `files.py PORT FOLDER`."""

import sys
from pathlib import Path

import uvloop
from aiohttp import web


def main(port: int, folder: Path) -> None:
    """Serve on 127.0.0.1:`port` until told to end."""
    app = web.Application()
    app.router.add_static("/", folder)
    uvloop.install()
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
