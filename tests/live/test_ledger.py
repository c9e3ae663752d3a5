"""The ledger on a real server: what somebody changes in it behind the clients' backs is found, each change as what it
is. A generator draws the changes, so what is there is known.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgdyno import _core
from pgdyno.cluster import administration
from pgdyno.cluster import target as targets
from pgdyno.drill import ledger
from pgdyno.engine import Plan

from tests.live.test_tls import Quiet
from tests.support.server import Server

RUN = 7
CLIENTS = 4


@pytest.fixture
def written(server: Server, database: str, tmp_path: Path) -> tuple[Any, list[ledger.Entry]]:
    target = targets.resolve(server.conninfo(dbname=database))
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        ledger.create(conn)
        ledger.create(conn)
    config = _core.ConnConfig(**target.core_arguments())
    done = _core.run(
        [config], ledger.workload(RUN, tmp_path / "records"), Quiet(), Plan(clients=CLIENTS, transactions=50)
    )
    assert done.error is None
    return target, ledger.read(tmp_path / "records")


def audited(target: Any, entries: list[ledger.Entry]) -> ledger.Audit:
    with administration.connect(target) as conn:
        there = ledger.look(conn, RUN)
    return ledger.audit(entries, there.rows, fault_ns=1 << 62, changed=there.changed, states=there.states)


def test_what_nobody_touched_is_whole(written: tuple[Any, list[ledger.Entry]]) -> None:
    found = audited(*written)
    assert found.acknowledged == 50 * CLIENTS and not found.unrecorded
    assert not (found.lost or found.changed or found.torn or found.twice or found.resurrected)


@pytest.mark.parametrize("seed", range(6))
def test_what_was_done_behind_the_clients_backs_is_found(
    written: tuple[Any, list[ledger.Entry]], server: Server, database: str, seed: int
) -> None:
    target, entries = written
    rng = random.Random(seed)
    keys = [(c, s) for c in range(CLIENTS) for s in range(1, 51)]
    rng.shuffle(keys)
    changed, lost = sorted(keys[: rng.randint(0, 9)]), sorted(keys[10 : 10 + rng.randint(0, 9)])
    phantoms = sorted((rng.choice([0, 9]), 1000 + n) for n in range(rng.randint(0, 5)))
    where = "where run = 7 and client = %s and sequence = %s"
    torn = set()
    with psycopg.connect(server.conninfo(dbname=database), autocommit=True) as conn:
        for key in changed:
            how = rng.choice(["content + 1", "content # (1::bigint << 63)", "null"])
            conn.execute(f"update public.pgdyno_ledger set content = {how} {where}", key)
        for key in lost:
            conn.execute(f"delete from public.pgdyno_ledger {where}", key)
        for client, sequence in phantoms:
            row = [RUN, client, sequence, _core.ledger_content(RUN, client, sequence)]
            conn.execute(
                "insert into public.pgdyno_ledger (run, client, sequence, content) values (%s, %s, %s, %s)", row
            )
        for client in rng.sample(range(CLIENTS), rng.randint(0, 3)):
            torn.add(client)
            how = rng.choice(["update public.pgdyno_ledger_register set sequence = sequence - 1",
                              "delete from public.pgdyno_ledger_register", "delete from public.pgdyno_ledger_token",
                              "update public.pgdyno_ledger_token set sequence = sequence - 1"])  # fmt: skip
            conn.execute(f"{how} where run = 7 and client = {client}")
    # Where the last row is gone, or a later one came, the others are no longer where it is.
    torn |= {client for client, sequence in lost if sequence == 50} | {client for client, _ in phantoms}
    found = audited(target, entries)
    assert sorted(found.changed) == changed
    assert [e.key for e in found.lost] == lost
    assert found.phantoms == phantoms
    assert sorted(int(words.split()[1].rstrip(":")) for words in found.torn) == sorted(torn), found.torn
