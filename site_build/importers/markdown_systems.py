"""Systems of which a folder of Markdown may be, with the addresses that they give."""

from typing import Final

SYSTEMS: Final[dict[str, tuple[tuple[str, ...], dict[str, str]]]] = {
    "Astro": (
        ("astro.config.*", "src/content/*/", "src/data/blog"),
        {
            r"src/(?:content/)?pages/(?P<rest>.+)": "/:rest/",
            r"src/content/(?:docs|spec|pages)/(?P<rest>.+)": "/:ids/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:ids/",
        },
    ),
    "Eleventy": (
        (".eleventy.js", "eleventy.config.*"),
        {
            # A text with the name of its folder stands for it.
            r"(?:(?:src|content|site)/)?(?P<rest>(?:.*/)?(?P<leaf>[^/]+))/(?P=leaf)": "/:rest/",
            r"(?:(?:src|content|site)/)?(?P<rest>.+)": "/:rest/",
        },
    ),
    "Docusaurus": (
        ("docusaurus.config.*",),
        {
            r"blog/(?P<rest>.+)": "/blog/:year/:month/:day/:name/",
            r"(?:src/pages/)?(?P<rest>.+)": "/:rest/",
        },
    ),
    "Gatsby": (
        ("gatsby-config.*",),
        {r"(?:src/)?(?:content/|pages/)?(?:(?:blog|posts)/)?(?P<rest>.+)": "/:rest/"},
    ),
    "VitePress": ((".vitepress", "docs/.vitepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "VuePress": ((".vuepress", "docs/.vuepress"), {r"(?:docs/)?(?P<rest>.+)": "/:rest.html"}),
    "MkDocs": (
        ("mkdocs.yml",),
        {
            r"docs/blog/posts/(?P<rest>.+)": "/blog/:year/:month/:day/:title/",
            r"docs/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Quartz": (("quartz.config.ts",), {r"content/(?P<rest>.+)": "/:dashed"}),
    "Zola": (
        ("zola.toml", "config.toml", "content/**/_index*.md"),
        {
            r"content/(?P<rest>.+)\.(?P<lang>[a-z]{2}(?:-\w+)?)": "/:lang/:ascii/",
            r"content/(?P<rest>.+)": "/:ascii/",
        },
    ),
    "Hexo": (
        ("source/_posts",),
        {
            r"source/_posts/(?P<rest>.+)": "/:year/:month/:day/:name/",
            r"source/(?P<rest>.+)": "/:rest/",
        },
    ),
    "Next.js": (
        ("next.config.*", "public/**/*.md", "public/**/*.mdx", "data/siteMetadata.*"),
        {
            r"public/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?app/(?P<collection>[^/]+)/(?:posts|content)/(?P<rest>[^/]+)": (
                "/:collection/:rest/"
            ),
            r"(?:src/)?(?:app|pages)/(?P<rest>.+)": "/:rest/",
            r"(?:src/)?(?:content|data)/(?P<collection>[^/]+)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?_?(?P<collection>posts|blog)/(?P<rest>.+)": "/:collection/:rest/",
            r"(?:src/)?content/(?P<rest>.+)": "/blog/:rest/",
        },
    ),
    "Obsidian": ((".obsidian", "*/.obsidian"), {}),
    "Markdown": (("*",), {}),
}
"""Marks of each system, then patterns of its sources with their addresses; the first counts."""
