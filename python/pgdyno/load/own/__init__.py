"""Anybody's own schema: files of SQL, tables filled with values that are drawn, dumps, databases as they are."""
