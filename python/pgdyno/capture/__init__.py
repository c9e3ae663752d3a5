"""Workloads from production: scripts from pg_stat_statements or a server log."""
