"""Full-text search in the posts of one build, by SQLite's FTS5, whatever engine keeps rows."""
