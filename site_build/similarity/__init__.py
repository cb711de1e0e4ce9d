"""How close posts are to each other, by their words and tags; it knows neither files nor pages."""
