"""The database of global management: SQLite by default, PostgreSQL for more than one replica.

`schema` has the tables, `migrations` brings a database to them, `Database` runs transactions in threads.
"""

from kairship.ghippo.database.database import Database

__all__ = ["Database"]
