"""A user's database driver under pgdyno's load: worker processes that carry statements out through it.

The engine keeps its schedule, histograms and outcomes: it speaks PostgreSQL's protocol to workers on sockets of this
machine, and each worker carries the statements out through the driver. `named` reads the name of a driver, `pool`
starts the workers, `worker` is one of them, and `adapters` calls drivers.
"""
