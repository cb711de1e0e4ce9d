"""Where rows are kept: queries in, rows out.

The only SQL of the service stands in this package, but for the literal steps of `schema.history`.
"""
