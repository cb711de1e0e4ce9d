"""The parts of the analysis, put together: its workers, and who may read which addresses."""

import orjson

from edge_api.api.description import api_catalog
from edge_api.api.mcp.operations import TITLE, ai_catalog
from edge_api.api.utility import VERSION
from edge_api.domain.analysis.analyst import Analyst
from edge_api.domain.analysis.discovery import AI_CATALOG, API_CATALOG
from edge_api.domain.analysis.pool import Pool
from edge_api.domain.analysis.visits import Doors, OwnSite
from edge_api.domain.edition import Shelf
from edge_api.outgoing.visitor import WebVisitor
from edge_api.settings import Settings


def make_analyst(settings: Settings, shelf: Shelf) -> Analyst:
    """Return who analyses documents; whoever gets it closes it."""
    return Analyst(Pool(), shelf, _doors(settings, shelf))


def _doors(settings: Settings, shelf: Shelf) -> Doors:
    if settings.analyze_fetch == "off":
        return Doors(None, None)
    documents = {
        API_CATALOG: orjson.dumps(api_catalog(settings)).decode(),
        AI_CATALOG: ai_catalog(settings.site_url, TITLE).body.decode(),
    }
    agent = f"fore-edge/{VERSION} (+{settings.site_url}/)"
    elsewhere = WebVisitor(agent) if settings.analyze_fetch == "on" else None
    return Doors(OwnSite(shelf, documents), elsewhere)
