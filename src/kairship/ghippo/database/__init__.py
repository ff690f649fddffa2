"""The database of global management: SQLite by default, PostgreSQL for more than one replica.

`schema` defines the tables, `migrations` creates and upgrades them, `Database` runs transactions in threads.
"""

from kairship.ghippo.database.database import Database

__all__ = ["Database"]
