"""Credentials below all slices: keys, scopes, signed tokens, rate limits."""
