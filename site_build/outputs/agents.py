"""Files for programs: `llms.txt` (llmstxt.org), `auth.md`, Agent Skills, and crawlers' files.

The texts of `auth.md` and of the skills (agentskills.io) are in files beside this module, with a
`$name` for each value of the site. The index of the skills follows Agent Skills Discovery 0.2.0.

Crawlers read `robots.txt` (RFC 9309), which lists crawlers of models by their purpose, the sitemap,
and `security.txt` (RFC 9116).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime
from hashlib import sha256
from importlib.resources import files
from string import Template
from types import MappingProxyType
from xml.sax.saxutils import escape

import frontmatter
import orjson

from edge_api.schema import paths
from edge_api.schema.credentials import (
    CREDENTIAL_SCOPES,
    PREFIXES,
    SCOPES,
    SECRET_PATTERN,
)
from edge_api.schema.sentences import sentence
from site_build import addresses
from site_build.outputs.feed import Item
from site_build.outputs.markdown import (
    escape_text,
    list_overviews,
    list_pages,
    list_posts,
    render_record,
    write_link,
)
from site_build.site import UNDATED, Document, Identity, Policy, Site
from site_build.text import write_instant

SKILLS_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
SKILLS_INDEX = f"{paths.SKILLS}index.json"

LLMS_FULL_POSTS = 100
"""The most posts in `llms-full.txt`."""
_EXAMPLE_LEAD = (
    '{"name": "Ann Lee", "email": "ann.lee@example.org", "budget_tier": "No budget: a question", '
    '"message": "May I translate your post?"}'
)
"""An example of a lead, as JSON."""

_PROGRAM_LINKS = (
    ("Search", paths.SEARCH, "posts by their words, best first, for `?q=`"),
    ("Documentation", paths.DOCS, "the API with examples in curl, Python and JavaScript"),
    ("API description", f"{paths.AUDIENCES['rest']}/openapi.json", "OpenAPI 3.1"),
    ("API catalog", paths.API_CATALOG, "where each API describes itself (RFC 9727)"),
    ("MCP server", paths.SERVER_CARD, "how to connect to it: the server card"),
    ("Skills", SKILLS_INDEX, "what an agent can do here, step by step"),
    ("auth.md", addresses.AUTH, "how a program gets access"),
)


def render_llms(site: Site, policy: Policy) -> str:
    """Return `llms.txt`: a heading, a quotation, and links to the Markdown of every page."""
    identity, count = site.identity, len(site.posts)
    extent = (
        "all posts"
        if count <= LLMS_FULL_POSTS
        else f"the newest {LLMS_FULL_POSTS} of {count} posts"
    )
    more = (
        ("Full text", addresses.LLMS_FULL, f"{extent} in one file"),
        ("Atom feed", addresses.FEED, "the newest posts in full; each tag has one of its own"),
        ("JSON Feed", addresses.FEED_JSON, "the same as JSON"),
        ("Sitemap", addresses.SITEMAP, "every page, with its last revision where that is known"),
    )
    sections = [
        f"# {identity.name}",
        identity.description and f"> {identity.description}",
        (
            "Every page of the sitemap exists as Markdown too: put `index.md` behind its address,"
            " or ask for `text/markdown`. The search knows only the second way. Posts are also"
            " served as JSON by the API, to whoever has a key."
        ),
        (
            f"An enquiry, a lead, needs {'a' if policy.leads_need_credential else 'no'} key and"
            f" reaches a person: `POST {identity.url}{paths.AUDIENCES['rest']}/leads` with"
            f" `Content-Type: application/json` and all four members of `{_EXAMPLE_LEAD}`."
        ),
        "## Pages",
        "\n".join(
            [*_list_links(identity, list_overviews(identity)), *list_pages(identity, site.pages)]
        ),
        "## Posts",
        "\n".join(list_posts(identity, site.posts)) or "None yet.",
        "## For programs",
        "\n".join(_list_links(identity, _PROGRAM_LINKS)),
        "## Optional",
        "\n".join(_list_links(identity, more)),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def _list_links(identity: Identity, links: Iterable[tuple[str, str, str]]) -> list[str]:
    return [
        f"- {write_link(title, identity.absolute(path.lstrip('/')))}: {sentence}"
        for title, path, sentence in links
    ]


def render_llms_full(identity: Identity, items: Sequence[Item], count: int) -> str:
    """Return `llms-full.txt`: the whole text of `items`, the newest of `count` posts."""
    extent = (
        f"{'One post' if count == 1 else f'All {count} posts'}, newest first."
        if count <= len(items)
        else f"The newest {len(items)} of {count} posts, newest first; "
        f"{identity.absolute(addresses.LLMS)} lists them all."
    )
    about = identity.description and f"\n\n> {identity.description}"
    head = f"# {identity.name}{about}\n\n{extent}\n"
    return "\n---\n\n".join([head, *(render_record(each.record, each.lang) for each in items)])


def render_auth(identity: Identity, policy: Policy) -> str:
    """Return `auth.md`: how a program without an account gets access."""
    is_closed = policy.leads_need_credential
    lines = ["| scope | lets its holder | works with |", "| --- | --- | --- |"]
    for name, opened in SCOPES.items():
        kinds = [f"`{kind}`" for kind, scopes in CREDENTIAL_SCOPES.items() if name in scopes]
        lines.append(f"| `{name}` | {opened} | {', '.join(kinds)} |")
    values: dict[str, str] = {
        **_list_template_values(identity),
        **{str(kind): prefix for kind, prefix in PREFIXES.items()},
        "name": escape_text(identity.name),
        "api_path": paths.AUDIENCES["rest"],
        "mcp_path": paths.AUDIENCES["mcp"],
        "resource_metadata": f"{identity.url}{paths.RESOURCE_METADATA}",
        "server_metadata": f"{identity.url}{paths.METADATA}",
        "oauth": f"{identity.url}{paths.OAUTH}",
        "search_data": paths.SEARCH_DATA,
        "request_access": paths.REQUEST_ACCESS,
        "claim_credential": paths.CLAIM_CREDENTIAL,
        "open_leads": "" if is_closed else f", leads (`POST {paths.AUDIENCES['rest']}/leads`)",
        "closed_leads": " and leads" if is_closed else ", the list of leads",
        "lead": _EXAMPLE_LEAD,
        "lead_header": "\nX-API-Key: <API_KEY>" if is_closed else "",
        "lead_credential": "A key with `leads:write` is needed."
        if is_closed
        else "No key is needed; one that is sent needs `leads:write`.",
        "scopes": "\n".join(lines),
        "people": f" People do the same at {_list_template_values(identity)['contact']}#access."
        if policy.has_access_form
        else "",
        "secret_pattern": SECRET_PATTERN,
    }
    return Template(_read("auth.md")).substitute(values)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill; its description says first what it does, then when to use it."""

    name: str
    description: str
    body: str

    @property
    def path(self) -> str:
        """The path of its file."""
        return f"{paths.SKILLS}{self.name}/SKILL.md"

    @property
    def text(self) -> str:
        """The file: front matter, then instructions."""
        description = json.dumps(self.description, ensure_ascii=False)  # JSON is also YAML.
        return f"---\nname: {self.name}\ndescription: {description}\n---\n\n{self.body.strip()}\n"


def render_skills(identity: Identity, policy: Policy) -> Mapping[str, str | bytes]:
    """Return the files of the skills and of their index, by path."""
    skills = list_skills(identity, policy)
    entries = [
        {
            "name": skill.name,
            "type": "skill-md",
            "description": skill.description,
            "url": identity.absolute(skill.path),
            "digest": f"sha256:{sha256(skill.text.encode()).hexdigest()}",
        }
        for skill in skills
    ]
    index = orjson.dumps({"$schema": SKILLS_SCHEMA, "skills": entries}, option=orjson.OPT_INDENT_2)
    return {SKILLS_INDEX: index + b"\n", **{each.path: each.text for each in skills}}


def list_skills(identity: Identity, policy: Policy) -> Sequence[Skill]:
    """Return every skill of the site."""
    values, skills = _list_template_values(identity), []
    names = ["read-the-journal", "use-the-posts-api", "send-an-enquiry", "connect-over-mcp"]
    if policy.has_writing:
        names.append("draft-a-post")
    for name in names:
        source = frontmatter.loads(_read(f"agent_skills/{name}.md"))
        # A `$` before any other name is for a shell, and stays.
        texts = (
            Template(text).safe_substitute(values)
            for text in (str(source["description"]), source.content)
        )
        skills.append(Skill(str(source["name"]), *texts))
    return skills


def _read(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def _list_template_values(identity: Identity) -> Mapping[str, str]:
    """Return the values for `$name` in the texts: the journal's name and its addresses."""
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


CRAWLERS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "ai-train": (
            "GPTBot",
            "ClaudeBot",
            "anthropic-ai",
            "Google-Extended",
            "Applebot-Extended",
            "CCBot",
            "Meta-ExternalAgent",
            "Bytespider",
            "cohere-training-data-crawler",
        ),
        "ai-input": (
            "ChatGPT-User",
            "Claude-User",
            "Perplexity-User",
            "MistralAI-User",
            "DuckAssistBot",
            "Meta-ExternalFetcher",
            "Claude-Web",
        ),
        "search": ("OAI-SearchBot", "Claude-SearchBot", "PerplexityBot", "Applebot", "Amazonbot"),
    }
)
"""Crawlers by the content signal (contentsignals.org) under which their operators say they fetch.

Many obey only a group of `robots.txt` with their own name; the others get the content signals.
Longer names come first: some crawlers take the first group whose name is a prefix of theirs.
"""

_SIGNAL_PURPOSES = (
    ("search", "to be found: an index, links, short excerpts"),
    ("ai-input", "to answer somebody who asks: retrieval, grounding, an agent that reads along"),
    ("ai-train", "to train or fine-tune a model"),
)


def render_robots(identity: Identity, policy: Policy) -> str:
    """Return `robots.txt`: the uses that are allowed to each crawler, and the sitemap."""
    values = {name: "yes" if policy.signals[name] else "no" for name, _ in _SIGNAL_PURPOSES}
    signal = ", ".join(f"{name}={value}" for name, value in values.items())
    return "\n".join(
        [
            "# What this site may be used for (contentsignals.org):",
            *(f"#   {name}: {purpose}" for name, purpose in _SIGNAL_PURPOSES),
            "",
            _write_group(["*"], signal, allowed=True),
            *(
                _write_group(agents, signal, allowed=policy.signals[name])
                for name, agents in CRAWLERS.items()
            ),
            f"Sitemap: {identity.absolute(addresses.SITEMAP)}\n",
        ]
    )


def _write_group(agents: Sequence[str], signal: str, *, allowed: bool) -> str:
    # Each address below the last two is for one person.
    rules = ["Allow: /", f"Disallow: {paths.OAUTH}/", f"Disallow: {paths.UNSUBSCRIBE}"]
    return "\n".join(
        [
            *(f"User-agent: {agent}" for agent in agents),
            f"Content-Signal: {signal}",
            *(rules if allowed else ["Disallow: /"]),
            "",
        ]
    )


def render_security(identity: Identity, policy: Policy, now: datetime) -> str:
    """Return `security.txt` as of `now` (UTC)."""
    fields = (
        ("Contact", policy.security_contact or identity.absolute(addresses.CONTACT)),
        ("Expires", f"{find_expiry(now):%Y-%m-%dT%H:%M:%SZ}"),
        ("Preferred-Languages", identity.lang),
        ("Canonical", identity.absolute(addresses.SECURITY)),
    )
    return "".join(f"{name}: {value}\n" for name, value in fields)


def render_opensearch(identity: Identity) -> str:
    """Return the description of the search for browsers (OpenSearch 1.1)."""
    name, url = escape(identity.name[:16]), escape(f"{identity.url}{paths.SEARCH}")
    description = identity.language.translate(sentence("Search %(site)s", site=identity.name))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">\n'
        f"<ShortName>{name}</ShortName>\n"
        f"<Description>{escape(description[:1024])}</Description>\n"
        f'<Url type="text/html" template="{url}?q={{searchTerms}}"/>\n'
        "<InputEncoding>UTF-8</InputEncoding>\n</OpenSearchDescription>\n"
    )


def find_expiry(now: datetime) -> datetime:
    """Return the first day of a month, ten to eleven months ahead; it changes once a month."""
    months = now.month - 1 + 11  # RFC 9116 recommends less than a year.
    return datetime(min(now.year + months // 12, MAXYEAR), months % 12 + 1, 1, tzinfo=now.tzinfo)


def render_sitemap(site: Site) -> str:
    """Return the sitemap; the protocol allows it 50,000 addresses."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ]
    for path, instant in _list_rows(site):
        url = escape(site.identity.absolute(path))
        dated = "" if instant == UNDATED else f"<lastmod>{write_instant(instant)}</lastmod>"
        lines.append(f"<url><loc>{url}</loc>{dated}</url>")
    return "\n".join([*lines, "</urlset>"]) + "\n"


def _list_rows(site: Site) -> Iterator[tuple[str, datetime]]:
    """Yield the path of each page of the sitemap, and its last revision."""
    latest = _find_latest(site.posts)
    for path in (addresses.HOME, *site.identity.addresses.list_overviews()):
        yield path, latest
    for page in site.pages:
        yield page.address, page.updated
    for tag in (each for each in site.tags + site.authors if each.address):
        yield tag.address, _find_latest(tag.posts)
    for post in site.posts:
        yield post.address, post.updated
    for path in paths.DOCS_PAGES:
        yield path.removeprefix("/"), UNDATED


def _find_latest(posts: Sequence[Document]) -> datetime:
    return max((post.updated for post in posts), default=UNDATED)
