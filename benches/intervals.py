"""Coverage of the 95% interval of a mean within one trial: the table of docs/math.md.

Simulated series; neighbouring values have the correlation rho.
"""

from __future__ import annotations

import math

import numpy as np
from pgdyno.analysis.series import mean_of

LENGTHS = (20, 30, 60, 120, 200)
RHOS = (0.0, 0.5, 0.8, 0.9)
ROUNDS = 1500


def main() -> None:
    """Simulate and print the table."""
    rng = np.random.default_rng(1)
    print(f"\nheld by 95% intervals of a mean, {ROUNDS:,} series each:")
    print("| intervals | " + " | ".join(f"rho(1) = {rho:g}" for rho in RHOS) + " |")
    for n in LENGTHS:
        held = []
        for rho in RHOS:
            noise = rng.normal(0, math.sqrt(1 - rho**2), (ROUNDS, n))
            series = np.empty((ROUNDS, n))
            series[:, 0] = rng.normal(0, 1, ROUNDS)
            for i in range(1, n):
                series[:, i] = rho * series[:, i - 1] + noise[:, i]
            found = [mean_of(x) for x in series]
            held.append(sum(abs(f.mean) <= (f.half_width or 0) for f in found) / ROUNDS)
        print(f"| {n} | " + " | ".join(f"{part:.0%}" for part in held) + " |")


if __name__ == "__main__":
    main()
