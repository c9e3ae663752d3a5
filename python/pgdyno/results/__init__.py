"""Results of a run: everything that is computed from its record, once."""
