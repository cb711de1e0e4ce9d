"""robots.txt, security.txt and the skills, as values: what they allow and what they promise."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.robotparser import RobotFileParser

import orjson
import pytest
import yaml

from site_build.errors import BuildError
from site_build.outputs.agents import (
    CRAWLERS,
    SKILLS_INDEX,
    SKILLS_SCHEMA,
    Skill,
    find_expiry,
    list_skills,
    render_robots,
    render_security,
    render_skills,
)
from site_build.site import DEFAULT_SIGNALS, Policy, read_policy
from tests.site_build.records import DAY, ME

POST = "https://journal.test/journal/a/"
WRITABLE = Policy(has_writing=True)
LINE = re.compile(r"(User-agent|Allow|Disallow|Content-Signal|Sitemap): \S.*|#.*|")


def judge(text: str) -> RobotFileParser:
    """Return a crawler's understanding of robots.txt."""
    parser = RobotFileParser()
    parser.parse(text.splitlines())
    return parser


def test_robots_txt_has_valid_groups_and_names_the_sitemap() -> None:
    """RFC 9309: every line is of a known kind, each group begins with whom it is for."""
    text = render_robots(ME, Policy())
    groups = [each for each in text.split("\n\n") if "User-agent" in each]

    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert all(group.startswith("User-agent: ") for group in groups)
    assert all(group.count("Content-Signal: ") == 1 for group in groups)
    assert text.endswith("Sitemap: https://journal.test/sitemap.xml\n")


def test_everybody_may_read_pages_and_nobody_follows_links_made_for_one_person() -> None:
    """Pages and API descriptions may be fetched; consent and unsubscribing are not for crawlers."""
    robots = judge(render_robots(ME, Policy()))

    assert robots.can_fetch("SomeBot", POST)
    assert robots.can_fetch("SomeBot", "https://journal.test/api/public/v1/openapi.json")
    assert "Disallow: /api/public/oauth/\nDisallow: /unsubscribe" in render_robots(ME, Policy())


@pytest.mark.parametrize("use", list(DEFAULT_SIGNALS))
@pytest.mark.parametrize("allowed", [True, False])
def test_a_signal_is_said_and_kept_to(use: str, allowed: bool) -> None:  # noqa: FBT001
    """Crawlers that fetch for a use are let in where it is allowed, and only there."""
    text = render_robots(ME, Policy({**DEFAULT_SIGNALS, use: allowed}))
    robots = judge(text)

    assert f"{use}={'yes' if allowed else 'no'}" in text
    assert {robots.can_fetch(agent, POST) for agent in CRAWLERS[use]} == {allowed}


def test_the_well_known_agents_are_named() -> None:
    """Crawlers of models are named, each once."""
    named = re.findall(r"^User-agent: (\S+)$", render_robots(ME, Policy()), re.MULTILINE)

    assert len(set(named)) == len(named)
    assert {
        "GPTBot",
        "OAI-SearchBot",
        "ChatGPT-User",
        "ClaudeBot",
        "Claude-User",
        "Claude-SearchBot",
        "PerplexityBot",
        "Perplexity-User",
        "Google-Extended",
        "Applebot-Extended",
        "CCBot",
        "Amazonbot",
        "Meta-ExternalAgent",
        "Bytespider",
        "anthropic-ai",
        "Claude-Web",
    } <= set(named)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"CONTENT_SIGNALS": {"ai-trian": True}}, "CONTENT_SIGNALS has to give True or False"),
        ({"CONTENT_SIGNALS": {"search": "yes"}}, "CONTENT_SIGNALS has to give True or False"),
        ({"CONTENT_SIGNALS": ["search"]}, "CONTENT_SIGNALS has to give True or False"),
        ({"SECURITY_CONTACT": "me@journal.test"}, "write mailto:, https:// or tel:"),
        ({"LEADS_REQUIRE_CREDENTIAL": "perhaps"}, "must be true or false"),
        ({"ACCESS_REQUESTS": "perhaps"}, "ACCESS_REQUESTS must be one of off, on"),
        ({"ACCESS_REQUESTS": True}, "ACCESS_REQUESTS must be one of off, on"),
        ({"SECURITY_CONTACT": "https://a b"}, "write mailto:, https:// or tel:"),
        ({"SECURITY_CONTACT": "mailto:a@b.test\nExpires: never"}, "write mailto:"),
    ],
)
def test_a_policy_that_cannot_be_meant_stops_the_build(
    settings: Mapping[str, object], sentence: str
) -> None:
    """The error has the setting's name."""
    with pytest.raises(BuildError, match=re.escape(sentence)):
        read_policy(settings)


def test_omitted_members_of_the_policy_keep_their_default() -> None:
    """A setting names what differs."""
    policy = read_policy({"CONTENT_SIGNALS": {"ai-train": True}, "SECURITY_CONTACT": None})

    assert policy.signals == {"search": True, "ai-input": True, "ai-train": True}
    assert policy.security_contact == ""


@pytest.mark.parametrize("contact", ["mailto:a@b.test", "https://b.test/report", "tel:+1-201-555"])
def test_a_contact_of_ones_own_goes_before_the_contact_page(contact: str) -> None:
    """RFC 9116, section 2.5.3: a URI; without one, the contact page."""
    given = read_policy({"SECURITY_CONTACT": contact})

    assert render_security(ME, given, DAY).startswith(f"Contact: {contact}\n")
    assert render_security(ME, Policy(), DAY).startswith("Contact: https://journal.test/contact/\n")


def test_security_txt_has_every_field_once() -> None:
    """RFC 9116: Contact and Expires are required, Expires and Preferred-Languages occur once."""
    lines = render_security(ME, Policy(), DAY).splitlines()

    assert [line.partition(": ")[0] for line in lines] == [
        "Contact",
        "Expires",
        "Preferred-Languages",
        "Canonical",
    ]
    assert lines[-1] == "Canonical: https://journal.test/.well-known/security.txt"


def test_security_txt_expires_within_a_year_and_changes_once_a_month() -> None:
    """From any day of two years on it holds ten months at least and never a whole year."""
    days = [datetime(2027, 1, 1, 12, tzinfo=UTC) + timedelta(days=n) for n in range(731)]

    assert all(timedelta(days=300) < find_expiry(day) - day < timedelta(days=337) for day in days)
    assert len({find_expiry(day) for day in days}) == 24
    assert find_expiry(datetime.max.replace(tzinfo=UTC)).year == 9999  # a date of a post, mistyped


def test_the_index_of_skills_has_the_digest_of_each() -> None:
    """Agent Skills Discovery 0.2.0: name, type, description, URL, and the digest of the bytes."""
    files = render_skills(ME, WRITABLE)
    index = orjson.loads(files[SKILLS_INDEX])

    assert index["$schema"] == SKILLS_SCHEMA
    named = {each["url"].removeprefix(f"{ME.url}/"): each for each in index["skills"]}
    assert {*files} == {SKILLS_INDEX, *named}
    for path, entry in named.items():
        text = files[path]
        assert isinstance(text, str)
        assert entry["digest"] == f"sha256:{sha256(text.encode()).hexdigest()}"
        assert set(entry) == {"name", "type", "description", "url", "digest"}
        assert entry["type"] == "skill-md"


@pytest.mark.parametrize("skill", list_skills(ME, WRITABLE), ids=lambda skill: skill.name)
def test_a_skill_has_the_form_of_its_norm(skill: Skill) -> None:
    """Its front matter is YAML with its folder's name, and a description that fits."""
    _, head, body = skill.text.split("---\n", 2)
    meta = yaml.safe_load(head)

    assert meta["name"] == skill.path.split("/")[-2]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", meta["name"])
    assert 1 <= len(meta["description"]) <= 1024
    assert meta["description"] == skill.description
    assert body.strip().startswith("# ")
    assert re.search(r"\$[a-z{]", skill.text) is None, "a name that nothing stands for"
    assert ME.name in skill.description
