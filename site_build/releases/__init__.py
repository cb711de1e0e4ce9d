"""Builds side by side, the link that says which one is served, and when that changes."""
