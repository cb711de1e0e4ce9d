"""Webhooks: events that are sent to the operator's endpoints (Standard Webhooks 1.0)."""
