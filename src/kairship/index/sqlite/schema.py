"""The tables of a cluster's file.

`part` has a row per kind. `obj` has a row per object, with the body as the last column, so that a walk over the other
columns does not read it. `tok` numbers the tokens of a kind (owner tokens, which cross kinds, belong to kind 0). `post`
has the postings: which objects have a token, in the order of their keys, so that a list by one label is a range of it.
`toks` repeats a row's token numbers, so that its postings can be removed without an index in the other direction.
`tomb` keeps tombstones of deletions for a while, and `alive` the last heartbeat. `ring` is the change feed. `obj_any`
and `trigram` are for searches over all kinds: by the beginning of a name, and by any part of it.
"""

import apsw

# Increase this when the layout changes, or the tokens of the same objects do: files of another format are built anew.
FORMAT = 4
_APPLICATION = 0x6B616978

_TABLES = """
CREATE TABLE alive(id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL);
INSERT INTO alive VALUES (1, 0);
CREATE TABLE part(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, resource BLOB NOT NULL,
  epoch INTEGER NOT NULL, began INTEGER NOT NULL, revision INTEGER NOT NULL, live INTEGER NOT NULL, heard REAL NOT NULL,
  begun REAL NOT NULL, left_out BLOB NOT NULL
);
CREATE TABLE obj(
  id INTEGER PRIMARY KEY, part INTEGER NOT NULL, key TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
  uid TEXT NOT NULL, rv INTEGER NOT NULL, epoch INTEGER NOT NULL, created INTEGER NOT NULL, bare INTEGER NOT NULL,
  toks BLOB NOT NULL, body BLOB NOT NULL
);
CREATE UNIQUE INDEX obj_key ON obj(part, key);
CREATE INDEX obj_name ON obj(part, name, key);
CREATE INDEX obj_created ON obj(part, created, key);
CREATE INDEX obj_any ON obj(name, part, ns);
CREATE VIRTUAL TABLE trigram USING fts5(name, tokenize='trigram', detail='none', content='', contentless_delete=1);
CREATE TABLE tok(id INTEGER PRIMARY KEY, part INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE(text, part));
CREATE TABLE post(
  tok INTEGER NOT NULL, key TEXT NOT NULL, obj INTEGER NOT NULL, PRIMARY KEY(tok, key, obj)
) WITHOUT ROWID;
CREATE TABLE tomb(uid TEXT NOT NULL, part INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY(uid, part)) WITHOUT ROWID;
CREATE INDEX tomb_at ON tomb(at);
CREATE TABLE ring(
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL,
  deleted INTEGER NOT NULL
);
"""


def create(db: apsw.Connection) -> None:
    db.pragma("page_size", 16384)  # a page holds a few objects of the usual size
    db.pragma("journal_mode", "wal")
    with db:
        db.execute(_TABLES)
        db.pragma("application_id", _APPLICATION)
        db.pragma("user_version", FORMAT)


def is_ours(db: apsw.Connection) -> bool:
    return (db.pragma("application_id"), db.pragma("user_version")) == (_APPLICATION, FORMAT)
