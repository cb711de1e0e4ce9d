"""Writing from anywhere: what the watcher does with requests that the edge has checked."""
