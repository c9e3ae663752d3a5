"""Numbers in, dataclasses out; no I/O."""
