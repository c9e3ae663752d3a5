"""Performance of the storage below a database, measured without the database."""
