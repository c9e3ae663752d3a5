"""pgbench's built-in scripts on its command line."""

from __future__ import annotations

from pgdyno.pgbench.messages import Exit, log, plain
from pgdyno.spec.builtins import ALL, Builtin


def listing() -> None:
    """Show the available built-in scripts."""
    lines = "".join(f"  {b.name:>13}: {b.description}\n" for b in ALL)
    plain(f"Available builtin scripts:\n{lines}\n")


def find(name: str) -> Builtin:
    """Return the script whose name begins with `name`.

    Raise Exit if no script matches, or more than one.
    """
    found = [b for b in ALL if b.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        log("error", f'ambiguous builtin name: {len(found)} builtin scripts found for prefix "{name}"')
    else:
        log("error", f'no builtin script found for name "{name}"')
    listing()
    raise Exit(1)
