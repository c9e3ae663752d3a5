"""Plan of a run: its configurations, the order of its trials, and what a file asks for; no server is touched."""
