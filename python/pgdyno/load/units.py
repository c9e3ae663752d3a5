"""Sizes as PostgreSQL prints them."""

from __future__ import annotations


def pg_size(n: int) -> str:
    """Bytes as pg_size_pretty has them: kB is 1024 bytes, and a unit serves up to 10239."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n < 10 * 1024 or unit == "TB":
            break
        n = (n + 512) // 1024
    return f"{n} {unit}"
