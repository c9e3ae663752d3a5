"""TPC-C beside its rows and transactions, which are Rust: its schema, and what must be true of its tables."""
