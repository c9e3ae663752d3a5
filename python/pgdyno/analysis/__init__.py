"""Estimators: numbers in, dataclasses out, no I/O."""
