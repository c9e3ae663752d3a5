"""Runs: an experiment's plan, its servers, its trials in order, its record."""
