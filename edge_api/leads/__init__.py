"""Leads: what a person may send, how it is stored once, and the operations on it."""
