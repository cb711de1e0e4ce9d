"""Acts as a browser of a person who allows what is asked.

`python consenting_browser.py ADDRESS`: opens the page, pastes the key of the environment, goes on.
"""

import asyncio
import os
import sys

from aiohttp import ClientSession, CookieJar

from tests.judges.person import Person


async def main(address: str) -> None:
    """Go from the page to where the client waits."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        await Person(session, os.environ["KEY"]).open(address)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
