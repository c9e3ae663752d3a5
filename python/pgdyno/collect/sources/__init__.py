"""Sources that are sampled while a trial runs, one per file.

A source is created just before the trial. Each call of `rows` returns the activity since the call before. The result
is flat rows of numbers (float) and names (str). Amounts are per second or shares of the time, so that rows of
different lengths are comparable.
"""
