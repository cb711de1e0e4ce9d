"""The authorization server (OAuth 2.1): who may act for whom, decided on values.

A request names facts; those are read from the store, Authlib's rules decide on them without any
I/O, and what was decided is written in one transaction. HTTP and pages are unknown here.
"""
