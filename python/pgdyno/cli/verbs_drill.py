"""`pgdyno drill`: its options. What is heavy is imported inside."""

from __future__ import annotations

import typer

from pgdyno.cli.requests import DrillRequest
from pgdyno.cli.takes import takes
from pgdyno.errors import UsageError, msg


@takes(DrillRequest)
def drill(request: DrillRequest) -> None:
    """Inject faults into a cluster under load, let it fail over, and count lost commits.

    Each client records the acknowledgement of each commit; afterwards these records are compared with the surviving
    primary. Exit code 1: commits were lost although the mode promises no loss, or a round failed.
    """
    from pgdyno.cli import drill as verb

    if request.list_:
        raise typer.Exit(verb.list_faults())
    if request.folder is None:
        raise UsageError(msg("usage-no-cluster"), msg("remedy-cluster-list"))
    raise typer.Exit(verb.main(request, request.folder))
