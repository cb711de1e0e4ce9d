"""The tables of the stats: counts of a day, and nothing about who caused them."""

from typing import Annotated, Literal

from pydantic import Field

from edge_api.db.table import Index, RowModel, Table
from edge_api.db.types import Integer, NewId, Text

Day = Annotated[Text, Field(min_length=10, max_length=10)]
Kind = Literal[
    "person",
    "feed_reader",
    "search_engine",
    "ai_crawler",
    "ai_assistant",
    "mcp",
    "markdown_reader",
    "other_program",
]
Figure = Literal["visitors", "referrer", "source", "subscribers"]
MAX_PATH_LENGTH = 500
MAX_NAME_LENGTH = 200
OTHER = "other"
"""The name of figures that have none of their own: rare ones, and those over a bound."""


class PageViewRow(RowModel):
    """The views of an address on a day, by readers of a kind and name."""

    id: NewId
    day: Day = Field(description="In the journal's time zone; the first stands for an old month.")
    path: Annotated[Text, Field(max_length=MAX_PATH_LENGTH)]
    kind: Kind
    agent: Annotated[Text, Field(max_length=MAX_NAME_LENGTH)] = Field(
        default="", description="The name of a known program; empty for people and unknown ones."
    )
    count: Integer


class DailyFigureRow(RowModel):
    """Another number of a day."""

    id: NewId
    day: Day = Field(description="In the journal's time zone; the first stands for an old month.")
    figure: Figure
    name: Annotated[Text, Field(max_length=MAX_NAME_LENGTH)] = Field(
        description="Of visitors the kind, of subscribers the feed reader, else a host or a word."
    )
    count: Integer


PAGE_VIEWS = Table(
    "page_views",
    PageViewRow,
    indexes=(Index("page_views_counted", ("day", "path", "kind", "agent"), unique=True),),
    personal=None,
)
DAILY_FIGURES = Table(
    "daily_figures",
    DailyFigureRow,
    indexes=(Index("daily_figures_counted", ("day", "figure", "name"), unique=True),),
    personal=None,
)
