"""Drills: faults in a replicated cluster under load, and the count of lost commits."""
