"""Sites of a run: the servers that its trials run on, with their settings, datasets and limits."""
