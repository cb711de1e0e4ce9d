"""The columns that visitors fill in, shared by rows and the API's inputs, with their limits.

A row stores text from an administrator unchanged; an input trims and normalizes text from visitors
(`operation.input.SentColumns`).
"""

from typing import Annotated

from pydantic import Field

from edge_api.db.table import RowModel
from edge_api.db.types import Address, Lines, NewId, Text
from edge_api.schema.page_templates import MAX_BUDGET_TIER_LENGTH


class KeyedRow(RowModel):
    """A base with the column `id`: listed last among the bases, it makes `id` the first column."""

    id: NewId


class SentLead(RowModel):
    """The columns of a lead that people may send, by the form, the API and the tool of agents."""

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Who asks.", examples=["Ann Lee"]
    )
    email: Address = Field(
        description="Where an answer reaches them. White space around it is taken off.",
        examples=["ann.lee@example.org"],
    )
    budget_tier: Annotated[Text, Field(min_length=1, max_length=MAX_BUDGET_TIER_LENGTH)] = Field(
        description="What they may spend, in any words.", examples=["5k-10k"]
    )
    message: Annotated[Lines, Field(min_length=1, max_length=2000)] = Field(
        description="What they want; tabs and line ends stay, as line feeds.",
        examples=["We would like to move our blog to a static site."],
    )


class SentAccessRequest(RowModel):
    """The columns of a request for a credential that people may send."""

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Who asks: a person, or a program."
    )
    email: Address | None = Field(
        default=None, description="Where the person who decides may ask back."
    )
    purpose: Annotated[Lines, Field(min_length=1, max_length=2000)] = Field(
        description="What it is for; tabs and line ends stay, as line feeds."
    )
