"""Drills of clusters that another tool manages: Patroni for real, asynchronous, synchronous, strict."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import patroni
from tests.support.cli import environment, pgdyno
from tests.support.folders import reachable
from tests.support.patroni import Patroni

needs_patroni = pytest.mark.skipif(
    not patroni.is_possible(), reason="needs root, network namespaces, Debian's patroni, etcd-server, postgresql-15"
)
FILE = """
name = "patroni"
recover = "touch {folder}/recover; {whole}"
served_s = 90
[members]
{members}
[faults]
kill-primary = "{kill}"
cut-primary = "{cut}"
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Patroni]:
    """Three members; what was killed is started again when the drill's command asks for it."""
    with reachable() as base, Patroni(base) as made:
        over = threading.Event()

        def supervise() -> None:
            while not over.wait(0.2):
                if (base / "recover").exists():
                    made.start_missing()
                    (base / "recover").unlink()

        thread = threading.Thread(target=supervise)
        thread.start()
        yield made
        over.set()
        thread.join()


def described(cluster: Patroni, tmp_path: Path) -> Path:
    network, file = cluster.network, tmp_path / "cluster.toml"
    spaces = {name: network.namespace(name) for name in patroni.MEMBERS}
    addresses = [network.address(host) for host in network.hosts]
    # Clients still reach it; its standbys and etcd do not.
    own = "ip -n " + network.namespace("") + "$PGDYNO_PRIMARY"
    cut = "; ".join(f"{own} neigh replace {a} lladdr 02:00:00:00:00:00 nud permanent dev eth0" for a in addresses)
    whole = "; ".join(f"ip -n {s} neigh del {a} dev eth0 2>/dev/null" for s in spaces.values() for a in addresses)
    file.write_text(
        FILE.format(
            folder=cluster.folder,
            members="\n".join(f'{name} = "{cluster.conninfo(name)}"' for name in patroni.MEMBERS),
            kill=cluster.kill_command(),
            cut=cut,
            whole=f"{whole}; true",
        )
    )
    return file


def drilled(cluster: Patroni, tmp_path: Path, fault: str) -> Any:
    cluster.wait_whole()
    done = pgdyno(
        "drill", described(cluster, tmp_path), "--fault", fault, "--rounds", 1, "--clients", 4, "--before", 1.5,
        "--runs", tmp_path / "runs", "--json", "-q", "--i-know-this-breaks-it",
        env=environment(PGPASSWORD=patroni.PASSWORD), timeout=170,
    )  # fmt: skip
    assert done.code in (0, 1), done.err
    (verdict,) = done.json["verdicts"]
    (played,) = (tmp_path / "runs").glob("*/*/round-01/round.json")
    assert verdict["errors"] == [] and verdict["not_back"] == 0 and verdict["differing"] == [], played.read_text()[
        :3000
    ]
    return verdict | {"code": done.code, "round": json.loads(played.read_text())}


@needs_patroni
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("mode", "fault"),
    [("asynchronous", "cut-primary"), ("synchronous", "cut-primary"), ("strict", "kill-primary")],
)
def test_patroni_keeps_what_its_mode_promises(cluster: Patroni, tmp_path: Path, mode: str, fault: str) -> None:
    cluster.set(synchronous_mode=mode != "asynchronous", synchronous_mode_strict=mode == "strict")
    cluster.wait_synchronous(mode != "asynchronous")
    found = drilled(cluster, tmp_path, fault)
    assert found["round"]["old_primary"] != found["round"]["new_primary"]
    assert bool(found["synchronous_standby_names"]) == (mode != "asynchronous")
    assert found["acknowledged"] > 100 and found["resurrected"] == 0
    if mode == "asynchronous":
        # Cut off from etcd the leader goes on until its lease is up: what it acknowledges is gone.
        assert found["lost_in_silence"] > 0 and "asynchronous" in found["why"]
    else:
        assert found["lost"] == 0 and found["code"] == 0, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('name = "x"', 2, "members: is missing"),
        ('name = "x"\n[members]\na = "host=/x"\n[faults]\nk = "true"', 2, "members"),
        ('name = "x"\n[members]\na = "host=/x password=y"\nb = "host=/z"\n[faults]\nk = "true"', 2, "password"),
        (
            'name = "x"\n[members]\na = "host=/x"\nb = "host=/z"\n[faults]\nk = "true"\nl = "true"',
            2,
            "has no 'kill-primary'",
        ),
        # The only one that there is is meant.
        ('name = "x"\n[members]\na = "host=/x"\nb = "host=/z"\n[faults]\nk = "true"', 3, "would break it: k on a, b"),
        ('name = "x"\n[members]\na = "host=/x"\nb = "host=/z"\n[faults]\nkill-primary = "true"', 3, "--i-know-this"),
        ("name =", 2, "Invalid value"),
        ('name = "x"\nrecovr = "true"', 2, "cluster.toml:2: recovr: unknown key; did you mean recover?"),
    ],
)
def test_a_file_that_is_wrong_breaks_nothing(tmp_path: Path, text: str, code: int, words: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text + "\n")
    done = pgdyno("drill", file)
    assert done.code == code and words in done.err, done.err
