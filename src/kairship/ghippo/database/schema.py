"""The tables. Times are seconds since 1970; secrets are hashes, or sealed.

A change here needs a migration: a test compares the two.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Identifier = String(128)
# SQLite generates keys for INTEGER columns only.
Number = BigInteger().with_variant(Integer(), "sqlite")


def _required(name: str, kind: Any, **more: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **more)


def _owned_by(table: str, name: str) -> Column[Any]:
    return Column(name, ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False)


users = Table(
    "users",
    metadata,
    Column("id", Identifier, primary_key=True),
    _required("name", String(254)),
    _required("display_name", Text, server_default=""),
    _required("email", Text, server_default=""),
    Column("password_hash", Text),
    _required("must_change_password", Boolean, server_default=sa.false()),
    _required("disabled", Boolean, server_default=sa.false()),
    _required("provider", String(63), server_default=""),
    Column("external_subject", Text),
    _required("created_at", BigInteger),
    _required("last_login_at", BigInteger, server_default="0"),
    _required("issuer", Text, server_default=""),
    _required("suspended", Boolean, server_default=sa.false()),
    sa.UniqueConstraint("name"),
    sa.UniqueConstraint("provider", "external_subject"),
)

is_active_user = sa.and_(users.c.disabled.is_(False), users.c.suspended.is_(False))
"""Whether a user may sign in and act. A user is suspended while the changed identity provider is not confirmed."""

groups = Table(
    "groups",
    metadata,
    Column("id", Identifier, primary_key=True),
    _required("name", String(254)),
    _required("description", Text, server_default=""),
    _required("provider", String(63), server_default=""),
    _required("created_at", BigInteger),
    sa.UniqueConstraint("provider", "name"),
)

group_members = Table(
    "group_members",
    metadata,
    Column("group_id", ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "user_id"),
)

roles = Table(
    "roles",
    metadata,
    Column("id", String(63), primary_key=True),
    _required("display_name", Text, server_default=""),
    _required("description", Text, server_default=""),
    _required("permissions", Text),
)

folders = Table(
    "folders",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    _required("name", String(63)),
    Column("parent_id", ForeignKey("folders.id")),
    Index(None, "parent_id"),
    sqlite_autoincrement=True,
)

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=True),
    _required("name", String(63)),
    _required("alias", Text, server_default=""),
    Column("folder_id", ForeignKey("folders.id")),
    _required("created_at", BigInteger),
    sa.UniqueConstraint("name"),
    Index(None, "folder_id"),
    sqlite_autoincrement=True,
)

resources = Table(
    "resources",
    metadata,
    Column("uid", String(64), primary_key=True),
    _required("name", String(63)),
    sa.UniqueConstraint("name"),
    comment="Instances that are registered. A namespace needs no registration: it belongs to one of these.",
)

workspace_resources = Table(
    "workspace_resources",
    metadata,
    Column("id", Identifier, primary_key=True),
    _owned_by("workspaces", "workspace_id"),
    Column("instance_uid", ForeignKey("resources.uid", ondelete="CASCADE"), nullable=False),
    _required("namespace", String(63), server_default=""),
    sa.UniqueConstraint("instance_uid", "namespace"),
    Index(None, "workspace_id"),
)

clusters = Table(
    "clusters",
    metadata,
    Column("uid", String(64), primary_key=True),
    _required("name", String(63)),
    sa.UniqueConstraint("name"),
    comment="Clusters of container management that are registered.",
)

workspace_clusters = Table(
    "workspace_clusters",
    metadata,
    Column("id", Identifier, primary_key=True),
    _owned_by("workspaces", "workspace_id"),
    Column("cluster_uid", ForeignKey("clusters.uid", ondelete="CASCADE"), nullable=False),
    sa.UniqueConstraint("cluster_uid"),
    Index(None, "workspace_id"),
)

bindings = Table(
    "bindings",
    metadata,
    Column("id", Identifier, primary_key=True),
    _required("subject_kind", String(8)),
    _required("subject_id", Identifier),
    _required("role_id", String(63)),
    _required("target_kind", String(12)),
    _required("target_id", String(64), server_default=""),
    _required("namespace", String(63), server_default=""),
    _required("created_at", BigInteger),
    sa.UniqueConstraint(
        "subject_kind", "subject_id", "role_id", "target_kind", "target_id", "namespace", name="uq_bindings_grant"
    ),
    Index(None, "target_kind", "target_id"),
    Index(None, "role_id"),
)

effective_bindings = Table(
    "effective_bindings",
    metadata,
    Column("name", String(63), primary_key=True),
    _required("binding_id", Identifier),
    _required("spec", Text),
    _required("sequence", BigInteger),
    _required("revoked", Boolean),
    sa.UniqueConstraint("sequence"),
    Index(None, "binding_id"),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("id", Identifier, primary_key=True),
    _owned_by("users", "user_id"),
    _required("hash", LargeBinary(32)),
    _required("hint", String(16)),
    _required("name", String(128)),
    _required("permissions", Text, server_default=""),
    _required("created_at", BigInteger),
    _required("expires_at", BigInteger),
    _required("last_used_at", BigInteger, server_default="0"),
    _required("instance", String(63), server_default=""),
    _required("asked_with", Identifier, server_default=""),
    sa.UniqueConstraint("hash"),
    Index(None, "user_id"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Identifier, primary_key=True),
    _owned_by("users", "user_id"),
    _required("refresh_hash", LargeBinary(32)),
    Column("previous_hash", LargeBinary(32)),
    _required("rotated_at", BigInteger),
    _required("address", String(64)),
    _required("agent", String(256)),
    _required("created_at", BigInteger),
    _required("last_used_at", BigInteger),
    _required("expires_at", BigInteger),
    Column("sealed_id_token", LargeBinary),
    Column("family_hash", LargeBinary(32)),
    sa.UniqueConstraint("refresh_hash"),
    Index(None, "family_hash"),
    Index(None, "previous_hash"),
    Index(None, "user_id"),
)

login_failures = Table(
    "login_failures",
    metadata,
    Column("key", String(320), primary_key=True),
    _required("failures", Integer),
    _required("last_at", BigInteger),
    _required("locked_until", BigInteger),
)

device_logins = Table(
    "device_logins",
    metadata,
    Column("device_hash", LargeBinary(32), primary_key=True),
    _required("user_code", String(16)),
    _required("device", String(128)),
    _required("address", String(64)),
    _required("expires_at", BigInteger),
    _required("asked_at", BigInteger, server_default="0"),
    Column("approved", Boolean),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE")),
    _required("network", String(64), server_default=""),
    sa.UniqueConstraint("user_code"),
    Index(None, "network"),
)

provider_logins = Table(
    "provider_logins",
    metadata,
    Column("state_hash", LargeBinary(32), primary_key=True),
    _required("provider", String(63)),
    _required("nonce", String(64)),
    _required("sealed_verifier", LargeBinary),
    _required("redirect_uri", Text),
    _required("expires_at", BigInteger),
)

identity_providers = Table(
    "identity_providers",
    metadata,
    Column("name", String(63), primary_key=True),
    _required("display_name", Text, server_default=""),
    _required("issuer", Text),
    _required("client_id", Text),
    Column("sealed_secret", LargeBinary),
    _required("groups_claim", String(128), server_default="groups"),
    _required("redirect_uris", Text),
    _required("disabled", Boolean, server_default=sa.false()),
    _required("unconfirmed", Boolean, server_default=sa.false()),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("name", String(63), primary_key=True),
    _required("url", Text),
    _required("sealed_secret", LargeBinary),
    _required("disabled", Boolean, server_default=sa.false()),
    _required("delivered_sequence", BigInteger, server_default="0"),
    _required("reconciled_at", BigInteger, server_default="0"),
    _required("problem", Text, server_default=""),
    _required("owner", Identifier, server_default=""),
)

refused_bindings = Table(
    "refused_bindings",
    metadata,
    Column("webhook", ForeignKey("webhooks.name", ondelete="CASCADE"), primary_key=True),
    Column("name", String(63), primary_key=True),
    _required("sequence", BigInteger),
    _required("reason", Text),
    _required("at", BigInteger),
    comment="Bindings that a receiver cannot store as they are. They are sent again when they change.",
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("id", String(64), primary_key=True),
    _required("sealed_key", LargeBinary),
    _required("created_at", BigInteger),
)

audit = Table(
    "audit",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    _required("at", BigInteger),
    _required("user_id", Identifier),
    _required("user_name", Text),
    _required("address", String(64)),
    _required("action", String(191)),
    _required("instance", String(63)),
    _required("namespace", String(63)),
    _required("object", Text),
    _required("outcome", Integer),
    _required("message", Text),
    _required("request_id", String(64)),
    _required("mac", LargeBinary(32)),
    Index(None, "at"),
    Index(None, "user_id", "sequence"),
    Index(None, "instance", "sequence"),
)

audit_received = Table(
    "audit_received",
    metadata,
    Column("id", String(64), primary_key=True),
    _required("at", BigInteger),
    Index(None, "at"),
    comment="Events of other processes that are in the chain already: they may be sent again for a while.",
)

audit_ends = Table(
    "audit_ends",
    metadata,
    Column("end", String(8), primary_key=True),
    _required("sequence", BigInteger),
    _required("mac", LargeBinary(32)),
    _required("seal", LargeBinary(32)),
    comment="Where the chain begins (older entries were let go) and where it ends: a cut at either end shows.",
)

identity_changes = Table(
    "identity_changes",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    _required("kind", String(8)),
    _required("id", Identifier),
    _required("at", BigInteger),
    Index(None, "at"),
)

counters = Table("counters", metadata, Column("name", String(32), primary_key=True), _required("value", BigInteger))
