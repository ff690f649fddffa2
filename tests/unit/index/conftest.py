from support.index_stores import postgres, store

__all__ = ["postgres", "store"]
