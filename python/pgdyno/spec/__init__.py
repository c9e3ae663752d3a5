"""Experiment files: what they may say, and where they say it wrong."""
