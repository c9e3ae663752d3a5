"""Collectors: sources that are sampled during a trial, counters and totals around it."""
