"""One of several edges of a service on one machine: it shares sockets, and has a supervisor."""

import asyncio
import sys

from edge_api.commands.assembly import Assembly, assemble
from edge_api.commands.greeting import greet
from edge_api.commands.inheritance import Inheritance, Line
from edge_api.settings import Settings
from edge_api.web.server import Server, heed_signals, serve_until, start_on


async def work(inherited: Inheritance, host: str, settings: Settings) -> int:
    """Serve on the inherited sockets until told to end, or not needed any more. Returns 0.

    Returns 2 where nothing was inherited: the options are not for people.
    """
    try:
        end, sockets = inherited.take()
    except OSError:
        sys.stderr.write("--inherited: only the supervisor of --workers gives it\n")
        return 2
    told, line = heed_signals(), await Line.open(end)
    async with assemble(settings, alone=True) as assembly:
        line.say(await _find_fault(assembly))
        if not await line.wanted():
            line.close()
            return 0
        server = await start_on(assembly.app.handle, sockets)
        if inherited.greets:
            await greet(assembly, host, server.port)
        leaving = asyncio.create_task(_leave_at_the_last(line, server, told))
        await serve_until(told, server, assembly.service.health.start_draining)
        leaving.cancel()
    line.close()
    return 0


async def _find_fault(assembly: Assembly) -> str:
    report = await assembly.service.health.report()
    return str(report.get("error", ""))


async def _leave_at_the_last(line: Line, server: Server, told: asyncio.Event) -> None:
    """When the supervisor needs this worker no more, or is dead, leave new connections to others.

    At once, unlike at the end of the service: a connection that was taken has all the time of the
    drain to bring its request, and the port is free for the next supervisor.
    """
    await line.last()
    server.refuse()
    told.set()
