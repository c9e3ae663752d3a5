"""TPC-C in Python: consistency conditions, ACID tests, limits."""
