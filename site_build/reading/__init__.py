"""From the content folder to checked documents: every file read, every defect found.

It knows neither Pelican nor what pages look like.
"""
