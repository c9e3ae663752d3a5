"""A private cluster: made in a temporary folder, reached by a Unix-domain socket, gone when we are done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from pgdyno.cluster import binaries, clone
from pgdyno.cluster.account import owner_of
from pgdyno.cluster.held import HeldCluster, Hold
from pgdyno.cluster.layout import Layout, initdb
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.removal import Made
from pgdyno.cluster.scratch import Scratch
from pgdyno.cluster.settings import Setting
from pgdyno.errors import LocalError, msg
from pgdyno.interrupt import signals_held


class EmbeddedCluster(HeldCluster):
    """Private server in a new folder.

    Use it as a context manager. `keep` leaves the stopped server on disk. `template` is called with the programs in
    use and may return a data directory to start from.
    """

    def __init__(
        self,
        settings: list[Setting],
        *,
        keep: bool = False,
        pg_bin: Path | None = None,
        template: Callable[[binaries.Binaries], Path | None] = lambda _: None,
        parent: Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Set up a server whose data lie in a new folder in `parent`.

        None means the temporary folder. The server runs within `limits`.
        """
        super().__init__(Layout(Path()), settings, limits)
        self.keep = keep
        self._parent = parent
        self._pg_bin = pg_bin
        self._template = template
        self._scratch: Scratch | None = None

    def __enter__(self) -> EmbeddedCluster:
        try:
            with signals_held():
                self._scratch = Scratch(self._parent)
                self.layout = Layout(self._scratch.path)
            self.layout.refuse_bad_path()
            self.account.refuse_if_out_of_reach(self.base)
            self.layout.make_folder(self.layout.socket, self.account)
            self.binaries = binaries.find(self.account, self.base / "programs", self._pg_bin)
            template = self._template(self.binaries)
            if template is not None:
                clone.tree(template, self.data, owner_of(template), owner=(self.account.uid, self.account.gid))
            else:
                self.layout.make_folder(self.data, self.account)
                initdb(self.layout, self.binaries, self.account)
            self.start()
        except BaseException:
            self.keep = False
            with signals_held():
                self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        with signals_held():
            self.stop()
            if not self.keep:
                self._remove()
            elif self._scratch is not None:
                self._scratch.keep()

    def keep_as_loaded(self) -> None:
        """Keep a copy of the current data; the server is stopped during the copy."""
        self.stop()
        clone.tree(self.data, self._loaded_copy, self.account, sync_once=True)
        self.start()

    def restore_as_loaded(self) -> int:
        """Restore the kept copy of the data.

        Return the bytes that had to be copied because the file system could not share them.
        """
        self.stop(discard=True)
        with signals_held():
            removed = Made.at(self.data).moved(self.data.with_name("replaced")).remove()
        if not removed:
            raise LocalError(
                msg("error-could-not-be-removed-whole", data=self.data), msg("remedy-look-into-folder-s-permissions")
            )
        copied = clone.tree(self._loaded_copy, self.data, self.account, sync_once=True)
        self.start()
        return copied.copied_bytes

    @property
    def _loaded_copy(self) -> Path:
        return self.data.with_name("as-loaded")

    def _process(self, hold: Hold | None) -> ServerProcess:
        assert self.binaries is not None
        self.layout.configure(self.account, self.settings)
        return ServerProcess(self.binaries.program("postgres"), self.data, self.log, self.account, hold=hold)

    def _remove(self) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.remove()
