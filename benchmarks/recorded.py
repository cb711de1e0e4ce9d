"""Figures of services that no run here starts: recorded once, on another day of the same machine.

They stand in the report for a rough comparison, marked as what they are; nothing is held to them.
"""

from typing import Final

RECORDED: Final = (
    "Not of this run: recorded on 2026-11-20 on two cores, each server on one of them,",
    "32 connections (PostgREST 64). On that day aiohttp's hello-world reached 37,072/s.",
    "",
    "| server | one post /s | list of posts /s | newest 50 leads /s | new leads /s | memory MiB |",
    "|---|---|---|---|---|---|",
    "| Ghost 6.50.0 | 492 | 155 | | | 549 |",
    "| Directus 12.4.0 | 304 | 240 | 243 | 150 | 641 |",
    "| PostgREST 12.0.2 (with PostgreSQL) | | | 1,275 | 1,640 | 1,536 |",
    "",
    "The build of 10,000 posts on that day, in memory, each with the same bare theme (cold, after",
    "one edit, peak): Eleventy 3.1.8 21.7 s, 19.4 s, 1,155 MiB; stock Pelican 4.12 78.6 s cold;",
    "Hugo 0.168 11.2 s, 11.1 s, 2,213 MiB.",
)
