"""The edge service: it reads a built site's index and a store, and speaks HTTP."""
