"""Clusters of container management, and the workspaces that hold them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "clusters",
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_clusters")),
        sa.UniqueConstraint("name", name=op.f("uq_clusters_name")),
        comment="Clusters of container management that are registered.",
    )
    op.create_table(
        "workspace_clusters",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("workspace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cluster_uid", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["cluster_uid"], ["clusters.uid"], name=op.f("fk_workspace_clusters_cluster_uid"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_workspace_clusters_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_clusters")),
        sa.UniqueConstraint("cluster_uid", name=op.f("uq_workspace_clusters_cluster_uid")),
    )
    op.create_index(op.f("ix_workspace_clusters_workspace_id"), "workspace_clusters", ["workspace_id"])
