"""Runs through PgBouncer: it is seen, and said; what does not work through it is refused before anything is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pgdyno.cluster import pooler
from pgdyno.cluster import target as targets

from tests.support.cli import SHORT, pgdyno
from tests.support.folders import reachable
from tests.support.pgbouncer import PGBOUNCER, pgbouncer
from tests.support.server import Server

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="needs pgbouncer")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that PgBouncer's account can reach."""
    with reachable() as path:
        yield path


@pytest.fixture(scope="module")
def trusting() -> Iterator[Server]:
    made = Server(hba="host all all 127.0.0.1/32 trust")
    made.start()
    yield made
    made.stop()
    made.remove()


def server_words(server: Server) -> str:
    return f"host=127.0.0.1 port={server.port}"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [pytest.param("session", pooler.Pooler(by_transaction=False, prepares=True)),
     ("transaction", pooler.Pooler(by_transaction=True, prepares=False))],
)  # fmt: skip
def test_a_pooler_is_seen(trusting: Server, folder: Path, mode: str, expected: pooler.Pooler) -> None:
    with pgbouncer(folder, server_words(trusting), mode) as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        assert pooler.find(targets.resolve(info)) == expected
        # With a single session there is nobody to take it from, or nobody gets one.
    with pgbouncer(folder, server_words(trusting), mode, pool=1) as port:
        found = pooler.find(targets.resolve(f"host=127.0.0.1 port={port} user=postgres dbname=postgres"))
        assert found is not None and found.by_transaction is (mode == "transaction")
    assert pooler.find(targets.resolve(f"{server_words(trusting)} user=postgres dbname=postgres")) is None


def test_settings_of_ours_stay_with_nobody(trusting: Server, folder: Path) -> None:
    with pgbouncer(folder, server_words(trusting), "transaction", pool=1) as port:
        target = targets.resolve(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
        with targets.administrative(target, patience_s=7) as conn:
            assert conn.execute("select 1").fetchone() == (1,)
        with targets.administrative(target) as conn:
            shown = conn.execute("select current_setting('statement_timeout'), current_setting('lock_timeout')")
            assert shown.fetchone() == ("0", "0")


@pytest.mark.slow
def test_a_run_through_a_pooler(trusting: Server, folder: Path, tmp_path: Path) -> None:
    direct = f"{server_words(trusting)} user=postgres dbname=postgres"
    with pgbouncer(folder, server_words(trusting), "transaction") as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        run = ("run", "quick", *SHORT, "--runs", tmp_path)
        refused = pgdyno(*run, "--target", info)
        assert refused.code == 3 and "the protocol prepared does not work there" in refused.err
        assert "max_prepared_statements" in refused.err
        refused = pgdyno(*run, "--target", info, "--protocol", "extended")
        assert refused.code == 3 and "loading needs sessions of its own" in refused.err
        loaded = pgdyno("load", "tpcb", "--scale", 1, "--target", direct, "--force")
        assert loaded.code == 0, loaded.err
        done = pgdyno(*run, "--target", info, "--protocol", "extended", "--json", "--force")
        assert done.code == 0, done.err
        assert "a pooler, by transaction, without prepared statements" in done.err
        (path,) = tmp_path.iterdir()
        manifest = json.loads((path / "manifest.json").read_text())
        assert "by transaction" in manifest["server"]["pooler"]
        assert "a pooler of connections was between client and server" in (path / "report.md").read_text()
        trials = [json.loads(p.read_text()) for p in path.glob("trials/*/trial.json")]
        assert all(t["state"] == "finished" and "POOLED" in t["caveats"] and not t["summary"]["failed"] for t in trials)
    # By session everything works, loading too.
    with pgbouncer(folder, server_words(trusting), "session", pool=30) as port:
        info = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        done = pgdyno(
            "run", "quick", *SHORT, "--scale", 2, "--replace", "--target", info, "--force", "--runs", tmp_path
        )
        assert done.code == 0 and "a pooler, by session" in done.err, done.err
