"""Findings about links, images, headings and HTML, each at its place; it opens no file."""
