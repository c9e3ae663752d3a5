"""Diagnosis: findings from the recorded data that explain the speed of a configuration.

See docs/math.md, Diagnosis, for the formulas.
"""
