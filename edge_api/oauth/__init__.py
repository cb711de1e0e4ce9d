"""The authorization server (OAuth 2.1): who may act for whom."""
