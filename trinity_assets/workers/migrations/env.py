"""What alembic runs: the versions, on the connection and in the transaction that it is given."""

from alembic import context

from trinity_assets.workers.migrations import VERSION_TABLE

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
context.run_migrations()
