"""The program: what `pgbench` on the command line is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from pgdyno import __version__
from pgdyno.errors import EXIT_SIGINT, EXIT_SIGTERM
from pgdyno.interrupt import Terminated
from pgdyno.pgbench.messages import Exit, log


def main(arguments: list[str], clean_warnings: Callable[[], None] = lambda: None) -> int:
    """Run a command line and return the exit code. 0: done; 1: could not begin; 2: ended early or incomplete.

    `clean_warnings` is called before libraries are imported that may warn.
    """
    from pgdyno.pgbench import usage

    first = arguments[0] if arguments else ""
    if first in ("--help", "-?"):
        sys.stdout.write(usage.TEXT)
        return 0
    if first in ("--version", "-V"):
        sys.stdout.write(f"pgbench (PostgreSQL) {usage.VERSION} (pgdyno {__version__})\n")
        return 0
    try:
        from pgdyno.pgbench.options import parse

        o = parse(arguments, os.environ)
        if o.initialize:
            clean_warnings()
            from pgdyno.pgbench import initialize

            return initialize.run(o)
        from pgdyno.pgbench import bench

        return bench.run(o)
    except Exit as e:
        return e.code
    except UnicodeEncodeError:
        log("error", "an argument or a name is not valid UTF-8")
        return 1
    except KeyboardInterrupt:
        log("error", "interrupted")
        return EXIT_SIGINT
    except Terminated:
        return EXIT_SIGTERM
