"""What a document is like: its measures, its structure, its words, and what would mend it.

Documents are parsed in processes of their own (`worker.py`, `pool.py`), which can be killed.
"""
