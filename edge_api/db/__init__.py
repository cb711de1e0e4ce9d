"""The store: queries in, rows out.

All SQL of the service is in this package.
"""
