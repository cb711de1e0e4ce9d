"""Markdown into HTML: for the page, and reduced to an allow-list for strangers."""
