"""Writing: sources and drafts, which the watcher checks and stores."""
