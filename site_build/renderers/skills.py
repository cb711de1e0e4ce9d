"""Agent Skills (agentskills.io): what a program can do here, told to one that acts for a person.

Each is a short file, written beside this module with a `$name` for whatever a site decides. The
index of all of them is that of Agent Skills Discovery 0.2.0, with the digest of each file's bytes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

import frontmatter
import orjson

from edge_api.schema import paths
from site_build import addresses
from site_build.site import Identity

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
INDEX = f"{addresses.SKILLS}index.json"

_FOLDER = "agent_skills"
_FILES = (
    "read-the-journal.md",
    "use-the-posts-api.md",
    "send-an-enquiry.md",
    "connect-over-mcp.md",
)
"""In the order of the index."""


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
    """Return what is published of them by its paths, the index among it."""
    skills = list_skills(identity)
    return {INDEX: _render_index(identity, skills), **{each.path: each.text for each in skills}}


def list_skills(identity: Identity) -> Sequence[Skill]:
    """Return every skill, as it is told on the site of `identity`."""
    values = _name_values(identity)
    return [_read(file, values) for file in _FILES]


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


def _read(file: str, values: Mapping[str, str]) -> Skill:
    """Return the skill in a file; whatever else has a `$` in it is for a shell."""
    source = files(__package__).joinpath(_FOLDER, file).read_text(encoding="utf-8")
    told = frontmatter.loads(source)
    description, body = (
        Template(text).safe_substitute(values) for text in (str(told["description"]), told.content)
    )
    return Skill(str(told["name"]), description, body)


def _name_values(identity: Identity) -> Mapping[str, str]:
    """Return what the files name with `$`: the journal, and where its parts answer."""
    return {
        "journal": identity.name,
        "posts": identity.absolute(identity.addresses.journal or addresses.HOME),
        "llms": identity.absolute(addresses.LLMS),
        "full_text": identity.absolute(addresses.LLMS_FULL),
        "feed": identity.absolute(addresses.FEED_JSON),
        "feed_file": addresses.FEED_JSON,
        "search": f"{identity.url}{paths.SEARCH}",
        "api": f"{identity.url}{paths.AUDIENCES['rest']}",
        "mcp": f"{identity.url}{paths.AUDIENCES['mcp']}",
        "auth": identity.absolute(addresses.AUTH),
        "contact": identity.absolute(addresses.CONTACT),
    }
