"""Connections to user-supplied addresses: public ones only."""
