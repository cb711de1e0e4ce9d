"""The same API as most would write it with FastAPI and aiosqlite: models, a key, one connection.

It runs in the peers' own environment: `uvicorn fastapi_app:app`, with POSTS (a posts index),
DATABASE (a file with the table of leads) and KEYS (digests, separated by spaces).
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import aiosqlite
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request
from pydantic import BaseModel, Field

KEYS = frozenset(os.environ["KEYS"].split())
POSTS = json.loads(Path(os.environ["POSTS"]).read_text(encoding="utf-8"))["posts"]
COLUMNS = (
    "id, name, email, budget_tier, message, created_at, updated_at, status, notes, source,"
    " spam_score, spam_reasons, consent_at, consent_text"
)


class Summary(BaseModel):
    """A post as lists carry it."""

    slug: str
    title: str
    description: str
    excerpt: str
    publishedAt: str  # noqa: N815
    published_at: str
    updatedAt: str  # noqa: N815
    readingMinutes: int  # noqa: N815
    tags: list[str]
    url: str


class Post(Summary):
    """A whole post."""

    content: str
    content_html: str


class PostList(BaseModel):
    """The newest posts."""

    posts: list[Summary]
    count: int


class LeadInput(BaseModel):
    """What a sender says."""

    name: str = Field(min_length=1, max_length=100)
    email: str = Field(min_length=3, max_length=255)
    budget_tier: str = Field(min_length=1, max_length=50)
    message: str = Field(min_length=1, max_length=2000)


class Lead(LeadInput):
    """A stored lead, as it is published."""

    id: str
    created_at: str


class LeadRow(Lead):
    """A stored lead, as administrators see it."""

    updated_at: str
    status: str
    notes: str | None
    source: str
    spam_score: int
    spam_reasons: str | None
    consent_at: str | None
    consent_text: str | None


class LeadList(BaseModel):
    """The newest leads."""

    leads: list[Lead]
    count: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Read the posts and open the database, durable at each commit."""
    app.state.posts = {post["slug"]: post for post in POSTS}
    async with aiosqlite.connect(os.environ["DATABASE"]) as db:
        db.row_factory = aiosqlite.Row
        await db.execute("PRAGMA journal_mode = WAL")
        await db.execute("PRAGMA synchronous = FULL")
        app.state.db = db
        yield


async def require_key(x_api_key: Annotated[str | None, Header()] = None) -> None:
    """Refuse a request without a known key."""
    if x_api_key is None or sha256(x_api_key.encode()).hexdigest() not in KEYS:
        raise HTTPException(401, "A valid key is needed")


def database(request: Request) -> aiosqlite.Connection:
    """Return the connection that all requests share."""
    db: aiosqlite.Connection = request.app.state.db
    return db


app = FastAPI(lifespan=lifespan)
Database = Annotated[aiosqlite.Connection, Depends(database)]
KEYED = [Depends(require_key)]


@app.get("/posts", response_model=PostList, dependencies=KEYED)
async def list_posts(
    request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """List the newest posts."""
    posts = list(request.app.state.posts.values())[:limit]
    return {"posts": posts, "count": len(posts)}


@app.get("/posts/{slug}", response_model=Post, dependencies=KEYED)
async def get_post(slug: str, request: Request) -> dict[str, Any]:
    """Give one post."""
    post: dict[str, Any] | None = request.app.state.posts.get(slug)
    if post is None:
        raise HTTPException(404, "No post has this slug")
    return post


@app.post("/leads", status_code=201)
async def create_lead(lead: LeadInput, db: Database) -> Lead:
    """Store a lead."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    stored = Lead(id=str(uuid4()), created_at=now, **lead.model_dump())
    await db.execute(
        "INSERT INTO leads (id, name, email, budget_tier, message, created_at, updated_at, status,"
        " source, spam_score) VALUES (?, ?, ?, ?, ?, ?, ?, 'new', 'api', 0)",
        (stored.id, stored.name, stored.email, stored.budget_tier, stored.message, now, now),
    )
    await db.commit()
    return stored


@app.get("/leads", response_model=LeadList, dependencies=KEYED)
async def list_leads(db: Database, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Any:
    """List the newest leads."""
    rows = await db.execute_fetchall(
        "SELECT id, name, email, budget_tier, message, created_at FROM leads"
        " WHERE status <> 'spam' ORDER BY created_at DESC, id DESC LIMIT ?",
        (limit,),
    )
    return {"leads": [dict(row) for row in rows], "count": len(list(rows))}


@app.get("/admin/leads", response_model=list[LeadRow], dependencies=KEYED)
async def find_leads(
    db: Database,
    budget_tier: str | None = None,
    before: str | None = None,
    order: Literal["asc", "desc"] = "desc",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """Filter and order rows."""
    asked = {"budget_tier = ?": budget_tier, "created_at < ?": before}
    given = {condition: value for condition, value in asked.items() if value is not None}
    where = f" WHERE {' AND '.join(given)}" if given else ""
    rows = await db.execute_fetchall(
        f"SELECT {COLUMNS} FROM leads{where}"  # noqa: S608  none of it is given
        f" ORDER BY created_at {order}, id {order} LIMIT ?",
        (*given.values(), limit),
    )
    return [dict(row) for row in rows]
