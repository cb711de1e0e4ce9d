"""The one place where Pelican is driven: its signals, its generators, its writer."""
