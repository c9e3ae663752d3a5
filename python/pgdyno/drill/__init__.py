"""Drills: a cluster under load is broken, fails over, and every acknowledged commit is looked for."""
