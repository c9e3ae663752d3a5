"""Experiment files: models, validation, mistakes with file and key."""
