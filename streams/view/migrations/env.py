"""What Alembic runs: the migrations, on the connection that it is given."""

from alembic import context

from headrace.streams.view.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
