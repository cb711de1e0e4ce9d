"""Readers of journals that other systems made, and the writer that makes a journal of them."""
