"""The planted fault that the crash drill for mail is there to catch: it logs before it sends.

`python -m tests.drills.hasty_mail` is `python -m edge_api mail run` with it.
"""

import sys
from email.message import EmailMessage

from edge_api.__main__ import main
from edge_api.db.table import Row
from edge_api.mail.delivery import Connection, Delivery


async def send_hastily(
    self: Delivery, entry: Row, message: EmailMessage, connection: Connection
) -> bool:
    """Say that the relay has it, and hand it over after that."""
    await self._record_sent(entry)
    await connection.send(self._sender, entry["recipient_email"], message)
    return True


if __name__ == "__main__":
    Delivery._send = send_hastily  # type: ignore[method-assign]  # noqa: SLF001
    sys.exit(main(["mail", "run"]))
