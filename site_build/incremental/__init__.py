"""What makes a second build quick: results under the digest of their causes, files linked again.

It knows nothing of what is in them.
"""
