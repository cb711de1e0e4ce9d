"""Backups, restores and the replica, and the proof that they can be restored."""
