"""Run by Alembic, within the transaction that `Database.open` began."""

from alembic import context

from kairship.ghippo.database.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the transaction is ours
)
context.run_migrations()
