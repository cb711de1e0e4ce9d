"""What is wrong with a text as its reader will see it, and where its author wrote it.

The converter says what is a link, an image or a heading; marks in its input say where.
"""
