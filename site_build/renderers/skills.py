"""Agent Skills (agentskills.io): what a program can do here, told to one that acts for a person.

Each is a short file of its own; the index of all of them is that of Agent Skills Discovery 0.2.0,
with the digest of each file's bytes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from edge_api.schema import paths
from site_build import addresses
from site_build.site import Identity

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
INDEX = f"{addresses.SKILLS}index.json"

_API, _MCP = (paths.DOORS["rest"], paths.DOORS["mcp"])


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill; the first words of its description say what it does, the others when to use it."""

    name: str
    description: str
    body: str

    @property
    def path(self) -> str:
        """Where its file goes."""
        return f"{addresses.SKILLS}{self.name}/SKILL.md"

    @property
    def text(self) -> str:
        """The file: front matter, then what to do."""
        description = json.dumps(self.description, ensure_ascii=False)  # YAML reads it as well.
        return f"---\nname: {self.name}\ndescription: {description}\n---\n\n{self.body.strip()}\n"


def render_skills(identity: Identity) -> Mapping[str, str | bytes]:
    """Return the files by their paths, the index among them."""
    skills = list_skills(identity)
    return {INDEX: _render_index(identity, skills), **{each.path: each.text for each in skills}}


def list_skills(identity: Identity) -> Sequence[Skill]:
    """Return every skill."""
    return (_read(identity), _use_api(identity), _send(identity), _connect(identity))


def _render_index(identity: Identity, skills: Sequence[Skill]) -> bytes:
    entries: list[dict[str, Any]] = [
        {
            "name": skill.name,
            "type": "skill-md",
            "description": skill.description,
            "url": identity.absolute(skill.path),
            "digest": f"sha256:{sha256(skill.text.encode()).hexdigest()}",
        }
        for skill in skills
    ]
    return orjson.dumps({"$schema": SCHEMA, "skills": entries}, option=orjson.OPT_INDENT_2) + b"\n"


def _read(identity: Identity) -> Skill:
    return Skill(
        "read-the-journal",
        f"Read and quote posts of {identity.name} as Markdown, without a key. Use it when somebody"
        " asks what this journal says about a subject, or wants one of its posts summed up.",
        f"""\
# Read the journal

Nothing here needs a key. Every page exists as Markdown: ask for `text/markdown`, or put
`index.md` behind the address.

1. All posts with a sentence on each, newest first:

   ```sh
   curl -fsS {identity.absolute(addresses.LLMS)}
   ```

2. One post or page, from an address in that list:

   ```sh
   curl -fsS -H 'Accept: text/markdown' {identity.absolute(addresses.JOURNAL)}
   ```

3. The newest posts in full: {identity.absolute(addresses.LLMS_FULL)} as one text, or the feed:

   ```sh
   curl -fsS {identity.absolute(addresses.FEED_JSON)}
   ```

   Each tag has a feed of its own: `/tags/<tag>/{addresses.FEED_JSON}`.

4. Posts by their words, best first: {identity.url}{paths.SEARCH}?q=words

When you quote a post, name its title and link to its page, which stands after `Source:`. An
address that is gone answers 404 and names the closest ones.""",
    )


def _use_api(identity: Identity) -> Skill:
    api = f"{identity.url}{_API}"
    return Skill(
        "use-the-posts-api",
        f"List, filter and fetch posts of {identity.name} as JSON over its REST API. Use it when a"
        " program has to work with posts as data, and an API key is at hand.",
        f"""\
# Use the posts API

Posts as JSON need an API key with the scope `posts:read`, in the header `X-API-Key`. Without one,
ask as {identity.absolute(addresses.AUTH)} says; a person decides.

```sh
curl -fsS -H "X-API-Key: $API_KEY" '{api}/posts?limit=5'
```

`limit`, `cursor`, `tag`, `since` and `q` (full text) choose among them; `next` leads on. One post
with its whole text, as `content` (Markdown) and `content_html`:

```sh
curl -fsS -H "X-API-Key: $API_KEY" "{api}/posts/$SLUG"
```

A fault is `{{"error": "<sentence>"}}`, and the sentence says what to mend. At 429, wait for
`Retry-After`. Answers carry an `ETag`: send it back in `If-None-Match`. Every operation is in
{api}/openapi.json.""",
    )


def _send(identity: Identity) -> Skill:
    return Skill(
        "send-an-enquiry",
        f"Send a message to the people behind {identity.name} for a person who wants an answer by"
        " e-mail. Use it only when that person has asked for it and has seen the text.",
        f"""\
# Send an enquiry

A message cannot be taken back. Show the person every word first, and use their own name and
address; never make one up. No key is needed unless the answer is 401.

```sh
curl -fsS -X POST {identity.url}{_API}/leads \\
  -H 'Content-Type: application/json' \\
  -H 'Idempotency-Key: enquiry-1' \\
  -d '{{"name": "Ann Lee", "email": "ann.lee@example.org",
       "budget_tier": "No budget: a question",
       "message": "May I translate your post on fore-edges into Portuguese?"}}'
```

All four members are needed. Choose a fresh `Idempotency-Key` for each message and keep it for
every retry of that message: so it is stored once, however often it is sent. 201 means that it is
stored. 400 names the member to mend; at 429 or 503, wait for `Retry-After`.

People write at {identity.absolute(addresses.locate_page("contact"))}.""",
    )


def _connect(identity: Identity) -> Skill:
    return Skill(
        "connect-over-mcp",
        f"Connect to the MCP server of {identity.name}: search and fetch posts, and more with more"
        " scopes. Use it when an MCP client is to read this journal with tools.",
        f"""\
# Connect over MCP

The endpoint is {identity.url}{_MCP} (Streamable HTTP, no sessions). Its card says which revisions
it speaks:

```sh
curl -fsS {identity.url}{_MCP}/server-card
```

It takes access tokens alone. An MCP client gets one by OAuth 2.1, beginning with the 401 that the
endpoint answers; a program without a browser asks for one as {identity.absolute(addresses.AUTH)}
says. With a token:

```sh
curl -fsS {identity.url}{_MCP} \\
  -H "Authorization: Bearer $ACCESS_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -H 'Accept: application/json, text/event-stream' \\
  -d '{{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}'
```

`tools/list` shows what the token's scopes allow; `search` finds posts and `fetch` reads one.""",
    )
