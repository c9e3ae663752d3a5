"""PostgreSQL servers: the user's, reached by conninfo, and our own, provisioned and taken down again."""
