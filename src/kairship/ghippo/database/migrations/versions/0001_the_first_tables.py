"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=191), nullable=False),
        sa.Column("instance", sa.String(length=63), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=False),
        sa.Column("mac", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    op.create_index(op.f("ix_audit_instance_sequence"), "audit", ["instance", "sequence"], unique=False)
    op.create_index(op.f("ix_audit_user_id_sequence"), "audit", ["user_id", "sequence"], unique=False)
    op.create_table(
        "audit_ends",
        sa.Column("end", sa.String(length=8), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("mac", sa.LargeBinary(length=32), nullable=False),
        sa.Column("seal", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("end", name=op.f("pk_audit_ends")),
        comment="Where the chain begins (older entries were let go) and where it ends: a cut at either end shows.",
    )
    op.create_table(
        "bindings",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("subject_kind", sa.String(length=8), nullable=False),
        sa.Column("subject_id", sa.String(length=128), nullable=False),
        sa.Column("role_id", sa.String(length=63), nullable=False),
        sa.Column("target_kind", sa.String(length=12), nullable=False),
        sa.Column("target_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("namespace", sa.String(length=63), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bindings")),
        sa.UniqueConstraint(
            "subject_kind", "subject_id", "role_id", "target_kind", "target_id", "namespace", name="uq_bindings_grant"
        ),
    )
    op.create_index(op.f("ix_bindings_role_id"), "bindings", ["role_id"], unique=False)
    op.create_index(op.f("ix_bindings_target_kind_target_id"), "bindings", ["target_kind", "target_id"], unique=False)
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counters")),
    )
    op.create_table(
        "effective_bindings",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("binding_id", sa.String(length=128), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_effective_bindings")),
        sa.UniqueConstraint("sequence", name=op.f("uq_effective_bindings_sequence")),
    )
    op.create_index(op.f("ix_effective_bindings_binding_id"), "effective_bindings", ["binding_id"], unique=False)
    op.create_table(
        "folders",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("parent_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["parent_id"], ["folders.id"], name=op.f("fk_folders_parent_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folders")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_folders_parent_id"), "folders", ["parent_id"], unique=False)
    op.create_table(
        "groups",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=254), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("provider", sa.String(length=63), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
        sa.UniqueConstraint("provider", "name", name=op.f("uq_groups_provider_name")),
    )
    op.create_table(
        "identity_changes",
        sa.Column("revision", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name=op.f("pk_identity_changes")),
    )
    op.create_index(op.f("ix_identity_changes_at"), "identity_changes", ["at"], unique=False)
    op.create_table(
        "identity_providers",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=True),
        sa.Column("groups_claim", sa.String(length=128), server_default="groups", nullable=False),
        sa.Column("redirect_uris", sa.Text(), nullable=False),
        sa.Column("disabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_identity_providers")),
    )
    op.create_table(
        "login_failures",
        sa.Column("key", sa.String(length=320), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("locked_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_login_failures")),
    )
    op.create_table(
        "provider_logins",
        sa.Column("state_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("provider", sa.String(length=63), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("sealed_verifier", sa.LargeBinary(), nullable=False),
        sa.Column("redirect_uri", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_provider_logins")),
    )
    op.create_table(
        "resources",
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_resources")),
        sa.UniqueConstraint("name", name=op.f("uq_resources_name")),
        comment="Instances that are registered. A namespace needs no registration: it belongs to one of these.",
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.String(length=63), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("permissions", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_roles")),
    )
    op.create_table(
        "signing_keys",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("sealed_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signing_keys")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=254), nullable=False),
        sa.Column("display_name", sa.Text(), server_default="", nullable=False),
        sa.Column("email", sa.Text(), server_default="", nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("must_change_password", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("disabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("provider", sa.String(length=63), server_default="", nullable=False),
        sa.Column("external_subject", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_login_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
        sa.UniqueConstraint("provider", "external_subject", name=op.f("uq_users_provider_external_subject")),
    )
    op.create_table(
        "webhooks",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("disabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("delivered_sequence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reconciled_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("hint", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("permissions", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_access_tokens_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_access_tokens_hash")),
    )
    op.create_index(op.f("ix_access_tokens_user_id"), "access_tokens", ["user_id"], unique=False)
    op.create_table(
        "device_logins",
        sa.Column("device_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("user_code", sa.String(length=16), nullable=False),
        sa.Column("device", sa.String(length=128), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("approved", sa.Boolean(), nullable=True),
        sa.Column("user_id", sa.String(length=128), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_device_logins_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("device_hash", name=op.f("pk_device_logins")),
        sa.UniqueConstraint("user_code", name=op.f("uq_device_logins_user_code")),
    )
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.String(length=128), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name=op.f("fk_group_members_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_group_members_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("group_id", "user_id", name=op.f("pk_group_members")),
    )
    op.create_index(op.f("ix_group_members_user_id"), "group_members", ["user_id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("refresh_hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("previous_hash", sa.LargeBinary(length=32), nullable=True),
        sa.Column("rotated_at", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=256), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_sessions_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("refresh_hash", name=op.f("uq_sessions_refresh_hash")),
    )
    op.create_index(op.f("ix_sessions_previous_hash"), "sessions", ["previous_hash"], unique=False)
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"], unique=False)
    op.create_table(
        "workspaces",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("alias", sa.Text(), server_default="", nullable=False),
        sa.Column("folder_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["folder_id"], ["folders.id"], name=op.f("fk_workspaces_folder_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspaces")),
        sa.UniqueConstraint("name", name=op.f("uq_workspaces_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_workspaces_folder_id"), "workspaces", ["folder_id"], unique=False)
    op.create_table(
        "workspace_resources",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("instance_uid", sa.String(length=64), nullable=False),
        sa.Column("namespace", sa.String(length=63), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["instance_uid"], ["resources.uid"], name=op.f("fk_workspace_resources_instance_uid"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_resources_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_resources")),
        sa.UniqueConstraint("instance_uid", "namespace", name=op.f("uq_workspace_resources_instance_uid_namespace")),
    )
    op.create_index(op.f("ix_workspace_resources_workspace_id"), "workspace_resources", ["workspace_id"], unique=False)
