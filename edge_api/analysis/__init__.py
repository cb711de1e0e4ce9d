"""The analysis of documents: metrics, structure, keywords, and what to fix.

Documents are parsed in processes of their own (`report.py`), which can be killed.
"""
