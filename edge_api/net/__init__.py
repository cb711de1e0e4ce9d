"""Connections to addresses that others name: public ones alone."""
