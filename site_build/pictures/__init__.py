"""Pictures: what they measure, the forms they are published in, and the cards that are drawn.

Bytes and values go in and out; it knows neither Markdown nor where a build keeps its results.
"""
