"""Names of programs by their User-Agent, from the list of the package crawler-user-agents."""

from edge_api.db.stats_tables import Kind


def name_agent(user_agent: str) -> tuple[Kind, str]:
    """Return the kind of a reader, and the name of a known program; empty for people."""
    raise NotImplementedError


def agent_url(agent: str) -> str:
    """Return the address where a known program is described; empty without one."""
    raise NotImplementedError
