"""Trials of a run: preparing one, driving its load, collecting beside it, summing it up."""
