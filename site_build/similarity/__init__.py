"""How close posts are to each other, by their words and tags.

It knows neither files nor pages.
"""
