"""Number of worker threads of a run."""

from __future__ import annotations


def workers_for_clients(clients: int, cores: int) -> int:
    """One worker serves 64 clients; more workers than cores serve nobody."""
    return max(1, min(cores, 1 + (clients - 1) // 64))
