"""The authorization server (OAuth 2.1)."""
