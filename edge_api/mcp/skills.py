"""Skills over MCP (SEP-2640): the skills of the current build, and their files with digests."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import frontmatter
import orjson
import yaml
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    TextResourceContents,
)

from edge_api.db.problems import Problem
from edge_api.journal.builds import Build
from edge_api.mcp.resources import Context, Journal, reject_cursor
from edge_api.operation.model import Json
from edge_api.schema.index import SITE_FOLDER
from edge_api.schema.paths import SKILLS
from edge_api.schema.site_policy import media_type

SCHEME: Final = "skill://"
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 2**20
"""What every host takes of one skill; a larger one is left out (SEP-2640, limits)."""
_MAIN: Final = "/SKILL.md"
Found = tuple[Mapping[str, Json], Mapping[str, bytes]]
"""The entries of skills, and their files, each by URI."""


class GetSkillParams(RequestParams):
    """The URI of the SKILL.md of a skill."""

    uri: Any = None


class Skills:
    """Answers requests for skills. They are public files, for which `mcp` suffices."""

    def __init__(self, journal: Journal, ttl_ms: int) -> None:
        self._journal = journal
        self._hint = {"ttlMs": ttl_ms, "cacheScope": "public"}

    async def list(self, _: Context, params: PaginatedRequestParams) -> dict[str, Any]:
        """List every skill. Raises Problem `unavailable`."""
        reject_cursor(params)
        return {"skills": list((await self._read_build())[0].values()), **self._hint}

    async def get(self, _: Context, params: GetSkillParams) -> dict[str, Any]:
        """Return one skill. Raises MCPError for no or an unknown URI, Problem `unavailable`."""
        entries, _files = await self._read_build()
        if not isinstance(params.uri, str):
            example = next(iter(entries), f"{SCHEME}NAME{_MAIN}")
            raise MCPError(INVALID_PARAMS, f"`uri` is missing; give a text such as {example}")
        if params.uri not in entries:
            raise _unknown(params.uri, entries)
        return {"skill": entries[params.uri], **self._hint}

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a file of a skill, or else a page. Raises MCPError and Problem."""
        uri = str(params.uri)
        if not uri.startswith(SCHEME):
            return await self._journal.read(context, params)
        entries, files = await self._read_build()
        if uri not in files:
            raise _unknown(uri, entries)
        kind = media_type(uri).partition(";")[0]
        try:
            text = TextResourceContents(uri=uri, mime_type=kind, text=files[uri].decode())
            return ReadResourceResult(contents=[text], cache_scope="public")
        except UnicodeDecodeError:
            blob = b64encode(files[uri]).decode()
            data = BlobResourceContents(uri=uri, mime_type=kind, blob=blob)
            return ReadResourceResult(contents=[data], cache_scope="public")

    async def _read_build(self) -> Found:
        try:
            return await asyncio.to_thread(read_skills, self._journal.build)
        except OSError:
            raise Problem("unavailable", "The skills cannot be read now: ask again") from None


def _unknown(uri: str, entries: Mapping[str, Json]) -> MCPError:
    known = ", ".join(entries) or "none"
    return MCPError(INVALID_PARAMS, f"No skill has the URI {uri[:200]}; there are {known}")


def read_skills(build: Build) -> Found:
    """Return the skills of a build. Raises OSError."""
    site, names = build.folder / SITE_FOLDER, {file.name for file in build.files.values()}
    found = {
        f"{SCHEME}{name.removeprefix(SKILLS)}": (site / name).read_bytes()
        for name in sorted(names)
        if name.startswith(SKILLS)
    }
    described = {uri: _describe(uri, found) for uri in found if uri.endswith(_MAIN)}
    entries = {uri: entry for uri, entry in described.items() if entry is not None}
    listed = {file["uri"] for entry in entries.values() for file in entry["resources"]}
    return entries, {uri: found[uri] for uri in listed}


def _describe(uri: str, found: Mapping[str, bytes]) -> Json | None:
    """Return the entry of the skill with this SKILL.md, or `None` for one that hosts refuse."""
    folder = uri.removesuffix(_MAIN)
    contents = {each: found[each] for each in found if each.startswith(f"{folder}/")}
    files = [
        {"uri": each, "digest": f"sha256:{sha256(content).hexdigest()}", "size": len(content)}
        for each, content in contents.items()
    ]
    try:
        told = frontmatter.loads(found[uri].decode()).metadata
        told = orjson.loads(orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS))
    except (yaml.YAMLError, TypeError, ValueError):
        return None
    is_named = told.get("name") == folder.rpartition("/")[2] and told.get("description")
    is_small = len(files) <= MAX_FILES and sum(map(len, contents.values())) <= MAX_BYTES
    return {"uri": uri, "frontmatter": told, "resources": files} if is_named and is_small else None
