"""Composes spec, cluster, load, engine, store and report into runs."""
