"""PostgreSQL servers: private, existing and remote ones, started, configured, stopped."""
