"""Addresses of MySQL and MariaDB."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgdyno import conninfo
from pgdyno.errors import UsageError
from pgdyno.mysql import target
from pgdyno.mysql.session import literal

from tests.support.tells import tells


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No file and no variable of this machine counts."""
    for name in ("MYSQL_HOST", "MYSQL_PWD", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(target, "_FILES", (str(tmp_path / "my.cnf"),))
    monkeypatch.setenv("USER", "me")


def test_a_url_names_everything() -> None:
    t = target.read("mysql://u%40x:p%2Fw@db1:3307/shop?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem", named="--target")
    assert (t.host, t.port, t.user, t.password, t.dbname) == ("db1", 3307, "u@x", "p/w", "shop")
    assert t.options["ssl-mode"] == "VERIFY_CA" and "p/w" not in repr(t)
    assert not t.is_local
    t = target.read("mariadb://db1/shop", named="--target")
    assert (t.port, t.user, t.password, t.options["ssl-mode"]) == (3306, "me", None, "PREFERRED")


def test_files_and_variables_fill_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    more = tmp_path / "conf.d"
    more.mkdir()
    (more / "a.cnf").write_text("[client]\nport = 3310\n[mysqld]\nport = 9\n")
    socket = tmp_path / "s"
    socket.touch()
    (tmp_path / "my.cnf").write_text(
        f"[mysqld]\nuser=mysql\n[client]\n# why\nuser = 'ann'\npassword=\"a b\"\nsocket={socket}\nssl_mode=required\n"
        f"skip-name\n!includedir {more}\n"
    )
    t = target.read("mysql:///shop", named="--target")
    assert (t.user, t.password, t.host, t.port, t.options["ssl-mode"]) == ("ann", "a b", str(socket), 3310, "REQUIRED")
    # As the servers' own clients have it: localhost is the socket, a port or an address is TCP.
    assert target.read("mysql://localhost/shop?socket=/tmp/x", named="--target").host == "/tmp/x"
    assert target.read("mysql://127.0.0.1/shop", named="--target").host == "127.0.0.1"
    # What the URL names is meant, whatever files and variables say.
    monkeypatch.setenv("MYSQL_HOST", "prod")
    assert target.read("mysql:///shop?socket=/tmp/x", named="--target").host == "/tmp/x"
    monkeypatch.setenv("MYSQL_PWD", "other")
    monkeypatch.setenv("MYSQL_HOST", "db9")
    monkeypatch.setenv("MYSQL_TCP_PORT", "3399")
    (tmp_path / "my.cnf").unlink()
    t = target.read("mysql:///shop", named="--target")
    assert (t.host, t.port, t.password) == ("db9", 3399, "other")


@pytest.mark.parametrize(
    ("url", "id"),
    [
        ("mysql://h:99999/d", "error-not-mysql-url"),
        ("mysql://[h/d", "error-not-mysql-url"),
        ("mysql://h", "error-mysql-url-database"),
        ("mysql://u:s3/cret@h/d", "error-not-mysql-url"),
        ("mysql://h/d?socket=/x", "error-mysql-url-socket"),
        ("mysql://localhost:3306/d?socket=/x", "error-mysql-url-socket"),
        ("mysql://h/d?foo=1", "error-mysql-url-option"),
        ("mysql://h/d?ssl-mode=perhaps", "error-mysql-url-ssl-mode"),
    ],
)
def test_mistakes_are_named(url: str, id: str) -> None:
    with pytest.raises(UsageError) as found:
        target.read(url, named="--target")
    assert tells(found.value.text(), id) and tells(found.value.text(), "remedy-mysql-url")
    assert "s3" not in found.value.text()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("ssl-verify-server-cert", "VERIFY_IDENTITY"),
        ("ssl", "REQUIRED"),
        ("skip-ssl", "DISABLED"),
        ("ssl=0", "DISABLED"),
        ("ssl-mode=verify_ca", "VERIFY_CA"),
        ("", "PREFERRED"),
    ],
)
def test_files_say_how_tls_is_wanted(text: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "more.cnf").write_text(f"[client]\n{text}\n")
    (tmp_path / "my.cnf").write_text(f"!include {tmp_path}/more.cnf\n")
    assert target.read("mysql://h/d", named="--target").options["ssl-mode"] == mode


def test_a_port_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_TCP_PORT", "x")
    with pytest.raises(UsageError) as found:
        target.read("mysql://h/d", named="--target")
    assert tells(found.value.text(), "error-mysql-port")


def test_other_schemes_are_refused() -> None:
    with pytest.raises(UsageError) as found:
        conninfo.read("mongodb://h/d", named="--target")
    assert tells(found.value.text(), "error-unknown-scheme") and tells(found.value.text(), "remedy-known-schemes")
    assert target.names_mysql("MariaDB://h/d") and not target.names_mysql("host=mysql dbname=d")


def test_passwords_in_urls_are_seen() -> None:
    assert conninfo.holds_secret("mysql://u:p@h/d") and conninfo.holds_secret("mysql://u:s3/cret@h/d")
    assert not conninfo.holds_secret("mysql://u@h/d") and not conninfo.holds_secret("mysql://u@h:3306/d")


@given(st.text(max_size=40))
def test_no_url_breaks_it(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, "_FILES", ())
        try:
            target.read(f"mysql://{text}", named="--target")
        except UsageError:
            return


def test_literals_end_where_they_should() -> None:
    assert literal("it's \\") == "'it''s \\\\'"
