"""Checks of a server before the first trial: connections, a pooler, the properties that scripts ask for."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgdyno.cluster import pooler
from pgdyno.errors import LocalError, RefusedError, SpecError, TargetError, msg
from pgdyno.load import find
from pgdyno.load.own.dataset import OwnDataset
from pgdyno.load.own.touched import requested_properties
from pgdyno.run.planning.plan import Plan
from pgdyno.run.planning.prepared import variables_for
from pgdyno.run.sites import dataset
from pgdyno.run.sites.site import Site
from pgdyno.search_path import option_for
from pgdyno.spec.experiment import Experiment
from pgdyno.spec.load import is_ready_made

#: File descriptors besides the clients': the engine's, and those of its observers.
_DESCRIPTORS = 200


def refuse_too_many_clients(plan: Plan) -> None:
    """Raise LocalError where this machine has too few file descriptors for the clients: before anything is made."""
    sides = 2 if plan.experiment.run.is_duet else 1
    need = sides * plan.most_clients + _DESCRIPTORS
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit not in (-1, resource.RLIM_INFINITY) and need > limit:
        fits, clients = max(1, (limit - _DESCRIPTORS) // sides), need - _DESCRIPTORS
        raise LocalError(
            msg(
                "error-client-need-file-descriptors-limit", clients=f"{clients:,}", need=f"{need:,}", limit=f"{limit:,}"
            ),
            msg("remedy-raise-ulimit-n-or-clients", need=need, clients=fits)
            if fits < clients
            else msg("remedy-raise-ulimit-n", need=need),
        )


def restrict_search_path(plan: Plan, site: Site) -> None:
    """Restrict name lookup to the tables' schema if statements and tables are pgdyno's own.

    Sessions that use statements or tables of the user keep the user's search path.
    """
    used = {c.workload for c in plan.configurations}
    workloads = [plan.experiment.workloads[name] for name in used]
    built_in = is_ready_made(plan.prepared.text) or all(
        w.tpcc is not None or all(s.builtin for s in w.scripts) for w in workloads
    )
    if site.claim is None or site.claim.is_pooled or not built_in or isinstance(site.dataset, OwnDataset):
        return
    option = option_for(find.schema_for(site.claim.conn, site.postgresql))
    given = site.target.options.get("options", "")
    if option not in given:
        site.target = replace(site.postgresql, options={**site.target.options, "options": f"{given} {option}".strip()})


def refuse_missing_properties(experiment: Experiment, site: Site, texts: Sequence[str]) -> None:
    """Raise SpecError if scripts refer to properties that a table does not have."""
    known = variables_for(site.dataset, 1.0, site.touched)
    axes = {name for axes in experiment.matrices for name in axes.variables}
    for table, what in requested_properties(texts):
        name = f"{table}_{what}"
        if name not in known and name not in axes and not any(f"\\set {name} " in text for text in texts):
            id = "error-script-needs-key" if f"{table}_rows" in known else "error-script-needs-table"
            raise SpecError(
                msg(id, name=name, table=table),
                msg("remedy-tables-there-scripts", value=", ".join(k for k in known if "_" in k) or "nothing"),
            )


def check_connections(plan: Plan, site: Site, facts: dict[str, Any]) -> str | None:
    """Check that the server takes the connections; return the description of a pooler between client and server.

    A pooler is recorded in the `facts` of the server. Raise RefusedError or TargetError if the run cannot go through
    it, or if the server takes too few connections.
    """
    between = pooler.find(site.postgresql) if site.claim is not None and site.claim.is_pooled else None
    if between is None:
        _refuse_too_few_connections(plan.most_clients, facts)
        return None
    facts["pooler"] = between.description
    # The server sees the pooler, not us.
    facts["same_machine"] = bool(facts.get("same_machine")) and site.target.is_local
    prepared = any(c.protocol == "prepared" for c in plan.configurations) or any(
        plan.experiment.workloads[c.workload].tpcc for c in plan.configurations
    )
    if prepared and not between.prepares:
        raise TargetError(
            msg("error-protocol-prepared-does-not-work", where=site.target.where, description=between.description),
            msg("remedy-protocol-extended-pooling-session-or"),
        )
    assert site.claim is not None
    if between.by_transaction and not dataset.is_there(site.claim.conn, site.dataset):
        raise RefusedError(
            msg("error-loading-needs-sessions-own", where=site.target.where, description=between.description),
            msg("remedy-load-without-pgdyno-load-target"),
        )
    return between.description


def _refuse_too_few_connections(most: int, facts: Mapping[str, Any]) -> None:
    shown = facts.get("settings") or {}
    try:
        limit = int(shown["max_connections"]["value"])
    except (KeyError, ValueError):
        return
    if most > limit - 3:
        raise TargetError(
            msg("error-clients-do-not-fit-into", most=most, limit=limit),
            msg("remedy-raise-server-or-use-fewer", max=max(1, limit - 10)),
        )
