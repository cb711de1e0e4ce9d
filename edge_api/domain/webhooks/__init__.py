"""Webhooks: events that are told to addresses of the operator's (Standard Webhooks 1.0).

How an address is reached is not known here.
"""
