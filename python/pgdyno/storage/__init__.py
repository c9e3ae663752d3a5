"""What the storage below a database can do, without the database."""
