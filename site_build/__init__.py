"""The site build: Markdown in, a static site and a posts index out."""
