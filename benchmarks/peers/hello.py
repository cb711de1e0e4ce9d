"""The least that an aiohttp application can do: the measure of what the edge adds."""

import sys

import uvloop
from aiohttp import web


async def hello(_request: web.Request) -> web.Response:
    """Answer with the least."""
    return web.Response(text="hello")


def main(port: int) -> None:
    """Serve on 127.0.0.1:`port` until told to end."""
    app = web.Application()
    app.router.add_get("/hello", hello)
    uvloop.install()
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
