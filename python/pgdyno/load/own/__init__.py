"""Own schemas: SQL files and dumps, filled with drawn rows."""
