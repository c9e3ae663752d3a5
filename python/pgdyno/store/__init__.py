"""Run directories: layout, crash-safe writing, reading, Parquet, DuckDB, export."""
