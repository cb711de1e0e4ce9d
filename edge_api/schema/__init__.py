"""Shared by both programs: the posts index, paths, credentials and the environment.

Nothing here opens a file, a connection or a socket; everything else may import it.
"""
