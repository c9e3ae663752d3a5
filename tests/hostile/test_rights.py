"""Root works below a server's folder with the server's rights: links that its account lays there lead root nowhere."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pgdyno.cluster import clone, datadir
from pgdyno.cluster.account import server_account
from pgdyno.cluster.removal import Made
from pgdyno.errors import PgdynoError
from pgdyno.load import loader
from pgdyno.load.dataset import Dataset
from pgdyno.stream.stream import RunStream

from tests.support.cli import PGDYNO, environment
from tests.support.server import Server
from tests.support.tells import tells

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lend")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder of root's alone."""
    folder = tmp_path / "secret"
    folder.mkdir(mode=0o700)
    (folder / "file").write_text("secret")
    (folder / "file").chmod(0o640)
    return folder


@pytest.fixture
def theirs(reachable: Path) -> Path:
    """A folder of the server's."""
    folder = reachable / "theirs"
    for path in (folder, folder / "a", folder / "b"):
        path.mkdir(mode=0o700)
    (folder / "a" / "file").write_text("1")
    (folder / "b" / "file").write_text("2")
    for path in (folder, *folder.rglob("*")):
        server_account().own(path)
    return folder


def test_rights_are_lent_and_come_back(secret: Path) -> None:
    account, before = server_account(), (os.geteuid(), os.getegid(), os.getgroups())
    with account.rights(), account.rights():
        assert (os.geteuid(), os.getegid(), os.getgroups()) == (account.uid, account.gid, [])
        with pytest.raises(PermissionError):
            (secret / "file").read_text()
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    with pytest.raises(KeyboardInterrupt), account.rights():
        raise KeyboardInterrupt
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    assert (secret / "file").read_text() == "secret"


def test_a_limit_of_processes_is_named_and_nothing_stays(reachable: Path, tmp_path: Path) -> None:
    """The server's account may have one process; root itself has no such limit."""
    words = [
        "bash",
        "-c",
        'ulimit -u 1; exec "$0" "$@"',
        PGDYNO,
        "run",
        "quick",
        "--embedded",
        "--runs",
        tmp_path / "runs",
    ]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(TMPDIR=str(reachable)), timeout=120)
    assert (
        done.returncode == 4
        and tells(done.stderr, "error-account-cannot-start-process-many")
        and "ulimit -u" in done.stderr
    )
    assert list(reachable.iterdir()) == [] and not (tmp_path / "runs").exists()


@pytest.mark.parametrize("lay", ["symbolic link", "link to a folder", "hard link"])
def test_a_snapshot_does_not_follow_what_is_swapped_in(theirs: Path, secret: Path, tmp_path: Path, lay: str) -> None:
    def swap(_: int) -> None:
        file, folder = theirs / "b" / "file", theirs / "b"
        if lay == "link to a folder":
            if not folder.is_symlink():
                folder.rename(theirs / "c")
                folder.symlink_to(secret)
            return
        file.unlink(missing_ok=True)
        if lay == "hard link":
            os.link(secret / "file", file)
        else:
            file.symlink_to(secret / "file")

    clone.tree(theirs, tmp_path / "before", server_account())
    copy = tmp_path / "copy"
    with pytest.raises(OSError):
        clone.tree(theirs, copy, server_account(), swap)
    assert all(p.read_text() != "secret" for p in copy.rglob("*") if p.is_file())


def test_a_load_does_not_write_through_what_is_swapped_in(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in which files are written is the account's, and so is the one that it stands in."""
    server = Server()
    try:
        server.start()
        server.stop()
        new = Made.new

        def swapped(path: Path, mode: int = 0o700) -> Made:
            made = new(path, mode)
            path.rename(path.with_name("aside"))
            path.symlink_to(secret)
            return made

        directory = datadir.examine(server.data)
        with datadir.PrivateServer(directory, "postgres", "postgres", pg_bin=server.bin) as private:
            monkeypatch.setattr(Made, "new", swapped)
            with pytest.raises(PgdynoError, match="Permission denied") as e:
                loader.into_server(private, Dataset("pk", 100), force=False, replace=False, stream=RunStream())
            assert tells(str(e.value), "left-nothing")
        assert [p.name for p in secret.iterdir()] == ["file"]
        # The link is gone as well: it was in the way.
        (server.data / "aside").rmdir()
        assert not (server.data / "pgsql_tmp_pgdyno").is_symlink()
        server.start()
    finally:
        server.remove()


def test_a_link_for_the_pid_file_is_not_written_through(theirs: Path, secret: Path) -> None:
    directory = datadir.DataDirectory(theirs, 18, server_account())
    (theirs / "postmaster.pid").symlink_to(secret / "new")
    with pytest.raises(PgdynoError), datadir.kept_stopped(directory):
        pass
    assert not (secret / "new").exists()
    (theirs / "postmaster.pid").unlink()
    (theirs / "PG_VERSION").write_text("18")
    with pytest.raises(PgdynoError, match="pg_control"):
        datadir.examine(theirs)
    (theirs / "PG_VERSION").unlink()
    (theirs / "PG_VERSION").symlink_to(secret / "file")
    with pytest.raises(PgdynoError, match="Permission denied"):
        datadir.examine(theirs)
