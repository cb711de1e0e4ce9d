"""The journal: the build that is served, its posts, and how they are searched."""
