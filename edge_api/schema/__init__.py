"""What exists: rows, tables, problems and the posts index, as declarations.

Nothing here opens a file, a connection or a socket; everything else may import it.
"""
