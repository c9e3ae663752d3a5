"""What is sampled while a trial runs: one source a file.

A source is made just before the trial; each call of `rows` says what happened since the call before, as flat rows of
numbers (float) and names (str). Amounts are per second or parts of the time, so that rows of different lengths compare.
"""
