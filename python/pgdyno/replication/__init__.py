"""Replicated clusters on this machine: created, observed, failed over, restored."""
