"""Why a configuration is as fast as it is: findings, from what was recorded. Formulas: docs/math.md, Diagnosis."""
