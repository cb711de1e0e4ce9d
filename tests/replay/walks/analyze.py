"""Walks that have documents analysed."""

from typing import Any, Final

from tests.replay.walk import Walk, walk

ANALYZE: Final = "/api/public/v1/analyze"
TEXT: Final = "Binders painted on the fore-edge. Fan the pages. The picture comes and goes."
MARKDOWN: Final = (
    f"# Fore-edges\n\n{TEXT}\n\n## How\n\n- [a link](/journal/)\n\n"
    "![](x.png)\n\n| a |\n|---|\n| b |\n"
)
PAGE: Final = f"""<!doctype html><html lang="en"><head><title>T</title>
<meta name="description" content="D">
<script type="application/ld+json">{{"@type": "Article"}}</script></head>
<body><main><h1>Fanned</h1>
<p>{TEXT}</p><img src="x.png"><a href="https://other.example/"></a></main></body></html>"""
GERMAN: Final = (
    "Die Buchbinder malten auf den Schnitt. Man fächert die Seiten auf, und das Bild kommt."
)
CASES: Final[tuple[Any, ...]] = (
    {"text": TEXT},
    {"markdown": MARKDOWN},
    {"html": PAGE},
    {"html": "<h1>Fanned</h1><p>It shows."},
    {"text": TEXT, "keywords": 0},
    {"text": TEXT, "keywords": 20},
    {"text": TEXT, "keywords": 21},
    {"text": TEXT, "related": 0},
    {"text": TEXT, "related": 10},
    {"text": TEXT, "related": 11},
    {"text": TEXT, "keywords": 2.0},
    {"text": TEXT, "keywords": 2.5},
    {"text": TEXT, "keywords": "2"},
    {"text": TEXT, "language": "de"},
    {"text": GERMAN},
    {"text": GERMAN, "language": "de-AT"},
    {"text": TEXT, "language": "x"},
    {"text": TEXT, "language": "english!"},
    {"text": "紙の本を読む。"},
    {},
    [],
    None,
    {"text": ""},
    {"text": 5},
    {"text": "x", "html": "y"},
    {"text": "x" * 100_001},
    {"text": f"{TEXT} " * 200},
    {"text": "x", "more": 1},
    {"markdown": "```\ncode\n```"},
    {"html": "<script>x</script>"},
    {"text": "\x00"},
    {"text": " "},
    {"text": None},
    {"url": "http://journal.test/journal/first-edge/"},
    {"url": "http://journal.test/"},
    {"url": "http://journal.test/journal/oldest-edge/"},
    {"url": "http://journal.test/none/"},
    {"url": "http://journal.test/robots.txt"},
    {"url": "http://journal.test/card.png"},
    {"url": "http://elsewhere.test/"},
    {"url": "http://127.0.0.1/"},
    {"url": "ftp://x"},
    {"url": "/journal/"},
    {"url": ""},
    {"url": "http://journal.test/journal/first-edge/#x"},
    {"url": "http://journal.test/api/public/ping"},
    {"url": "http://journal.test/journal"},
    {"url": "http://u:p@journal.test/"},
    {"url": "http://journal.test:81/"},
    {"url": "x" * 3000},
    {"url": "http://journal.test/contact/", "language": "en"},
    {"url": "http://[::1]/"},
)


@walk("analyze", fresh=False)
def analyze(w: Walk) -> None:
    """Send documents of each kind, addresses, and what is neither."""
    for given in CASES:
        w.post(ANALYZE, given)
    w.post(ANALYZE, CASES[0], headers={"Accept-Encoding": "gzip"})
    w.post(ANALYZE, CASES[0], key="posts")
    w.post(ANALYZE, CASES[0], key="revoked")
