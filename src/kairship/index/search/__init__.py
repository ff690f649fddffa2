"""Full-text search over the index: `model` is the question and its hits, `highlights` says why an object was found.

The databases answer searches in `index/sqlite/searching.py` and `index/postgres/searching.py`.
"""
