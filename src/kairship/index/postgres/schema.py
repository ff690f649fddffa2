"""The tables of the index in PostgreSQL, in a schema of their own whose name carries their version.

A newer layout is a new schema that fills itself; the old schema can be dropped when no process of the old version is
left. Texts are compared bytewise, as API servers order names.

    part            the partitions (one kind of one cluster), and how far the index has come with each
    obj             the objects; `tok` has an object's tokens, each prefixed with its partition (owner tokens with their
                    cluster), so that a token of one kind in one cluster has postings of its own
    word            the tokens into which a search looks, each once
    tomb            tombstones of recent deletions
    ring, ring_end  the change feeds, and how much of them was dropped
    write           callers' recent writes
    writer, alive   the term of each cluster's writer, and its last heartbeat
    slot            the history
"""

import asyncpg
import structlog

log = structlog.get_logger(__name__)

SCHEMA = "kairship_index_3"
CLOCK = "extract(epoch FROM clock_timestamp())"
"""The SQL of the one clock that all processes share."""
_LOCK = 0x6B616978

_TABLES = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
SET LOCAL search_path TO {SCHEMA};
CREATE TABLE IF NOT EXISTS secret(name text PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE IF NOT EXISTS alive(cluster text COLLATE "C" PRIMARY KEY, at double precision NOT NULL);
CREATE TABLE IF NOT EXISTS writer(cluster text COLLATE "C" PRIMARY KEY, term bigint NOT NULL);
CREATE TABLE IF NOT EXISTS part(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cluster text COLLATE "C" NOT NULL, name text COLLATE "C" NOT
  NULL, resource bytea NOT NULL, epoch bigint NOT NULL, began bigint NOT NULL, revision bigint NOT NULL, live boolean
  NOT NULL, heard double precision NOT NULL, begun double precision NOT NULL,
  left_out text[] NOT NULL DEFAULT '{{}}', UNIQUE (cluster, name)
);
CREATE TABLE IF NOT EXISTS obj(
  part bigint NOT NULL, key text COLLATE "C" NOT NULL, ns text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  uid text NOT NULL, rv bigint NOT NULL, epoch bigint NOT NULL, created bigint NOT NULL, bare boolean NOT NULL,
  tok text[] NOT NULL, body bytea COMPRESSION lz4 NOT NULL, PRIMARY KEY (part, key)
);
CREATE INDEX IF NOT EXISTS obj_name ON obj(part, name, key);
CREATE INDEX IF NOT EXISTS obj_created ON obj(part, created, key);
CREATE INDEX IF NOT EXISTS obj_tok ON obj USING gin(tok);
CREATE TABLE IF NOT EXISTS word(
  part bigint NOT NULL, text text COLLATE "C" NOT NULL, checked double precision NOT NULL, PRIMARY KEY (part, text)
);
CREATE INDEX IF NOT EXISTS word_checked ON word(part, checked);
CREATE TABLE IF NOT EXISTS tomb(
  part bigint NOT NULL, uid text NOT NULL, at double precision NOT NULL, PRIMARY KEY (part, uid)
);
CREATE INDEX IF NOT EXISTS tomb_at ON tomb(at);
CREATE TABLE IF NOT EXISTS write(
  caller text NOT NULL, cluster text NOT NULL, kind text NOT NULL, revision bigint NOT NULL, uid text NOT NULL,
  at double precision NOT NULL
);
CREATE INDEX IF NOT EXISTS write_caller ON write(caller, cluster, kind);
CREATE INDEX IF NOT EXISTS write_at ON write(at);
CREATE TABLE IF NOT EXISTS ring(
  number bigint GENERATED ALWAYS AS IDENTITY, cluster text COLLATE "C" NOT NULL, kind text NOT NULL, key text NOT NULL,
  uid text NOT NULL, deleted boolean NOT NULL, PRIMARY KEY (cluster, number)
);
CREATE TABLE IF NOT EXISTS ring_end(cluster text COLLATE "C" PRIMARY KEY, dropped bigint NOT NULL);
CREATE TABLE IF NOT EXISTS slot(
  subject text COLLATE "C" NOT NULL, tier smallint NOT NULL, place integer NOT NULL, begin bigint NOT NULL,
  cells bytea NOT NULL, PRIMARY KEY (subject, tier, place)
);
"""
_TRIGRAMS = f"""
CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE INDEX IF NOT EXISTS obj_trigram ON {SCHEMA}.obj USING gin(name public.gin_trgm_ops);
"""


async def ensure(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Creates the tables that are missing. Several processes may do so at once."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_TABLES)
    try:
        await connection.execute(_TRIGRAMS)
    except asyncpg.PostgresError as error:
        # Creating an extension needs a right that not every role has. Without trigrams, searches read every name.
        log.warning("the index has no trigrams: let an administrator create the extension pg_trgm", error=str(error))
