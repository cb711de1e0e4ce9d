"""`robots.txt` (RFC 9309): who may read what and for which use, and where the sitemap is.

Crawlers of models are named by what they fetch for, since many obey a group of their own alone;
the content signals (contentsignals.org) say the same to all others.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from edge_api.schema import paths
from site_build import addresses
from site_build.policy import Policy
from site_build.site import Identity

AGENTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "ai-train": (
            *("GPTBot", "ClaudeBot", "anthropic-ai", "Google-Extended", "Applebot-Extended"),
            *("CCBot", "Meta-ExternalAgent", "Bytespider", "cohere-training-data-crawler"),
        ),
        "ai-input": (
            *("ChatGPT-User", "Claude-User", "Perplexity-User", "MistralAI-User"),
            *("DuckAssistBot", "Meta-ExternalFetcher", "Claude-Web"),
        ),
        "search": ("OAI-SearchBot", "Claude-SearchBot", "PerplexityBot", "Applebot", "Amazonbot"),
    }
)
"""Crawlers by the content signal under which they fetch, as their operators state it.

Longer names come first: some crawlers take the first group whose name begins as theirs does.
"""

_SENSE = (
    ("search", "to be found: an index, links, short excerpts"),
    ("ai-input", "to answer somebody who asks: retrieval, grounding, an agent that reads along"),
    ("ai-train", "to train or fine-tune a model"),
)
_NOT_PAGES = (f"{paths.OAUTH}/", paths.UNSUBSCRIBE)
"""Made for one person each; a crawler has no business there."""


def render_robots(identity: Identity, policy: Policy) -> str:
    """Return the file."""
    signal = ", ".join(f"{name}={_spell(policy.signals[name])}" for name, _ in _SENSE)
    groups = [
        _write_group(agents, signal, allowed=policy.signals[name])
        for name, agents in AGENTS.items()
    ]
    everyone = _write_group(["*"], signal, allowed=True)
    sitemap = f"Sitemap: {identity.absolute(addresses.SITEMAP)}\n"
    return "\n".join([_explain(), everyone, *groups, sitemap])


def _explain() -> str:
    """Say what the signals mean, for whoever looks into the file."""
    lines = [f"#   {name}: {sense}" for name, sense in _SENSE]
    return "\n".join(["# What this site may be used for (contentsignals.org):", *lines, ""])


def _write_group(agents: Sequence[str], signal: str, *, allowed: bool) -> str:
    rules = ["Allow: /", *(f"Disallow: {path}" for path in _NOT_PAGES)]
    lines = [f"User-agent: {agent}" for agent in agents]
    lines += [f"Content-Signal: {signal}", *(rules if allowed else ["Disallow: /"])]
    return "\n".join([*lines, ""])


def _spell(allowed: bool) -> str:  # noqa: FBT001 - it is the value that is spelled
    return "yes" if allowed else "no"
