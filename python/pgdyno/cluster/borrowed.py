"""A cluster that stays, for the length of a run: started with the run's settings, and stopped again.

Settings are given on the server's command line, over the cluster's own: nothing in its folder is changed by them.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from pgdyno.cluster import binaries, datadir
from pgdyno.cluster.datadir import DataDirectory
from pgdyno.cluster.held import HeldCluster, Hold
from pgdyno.cluster.limits import Limits
from pgdyno.cluster.managed import ManagedCluster
from pgdyno.cluster.process import ServerProcess
from pgdyno.cluster.settings import Setting
from pgdyno.errors import RefusedError, msg
from pgdyno.interrupt import signals_held


class BorrowedCluster(HeldCluster):
    """One server of `pgdyno cluster`. Use as a context manager; it must be stopped, so that nobody else is using it."""

    binaries: binaries.Binaries

    def __init__(self, base: Path, settings: list[Setting], limits: Limits | None = None) -> None:
        self._cluster = ManagedCluster(base)
        super().__init__(self._cluster.layout, settings, limits)
        self._aside = ExitStack()
        self.binaries = binaries.find(self.account, self.base / "programs", self._cluster.programs())

    def __enter__(self) -> BorrowedCluster:
        if self._cluster.process_id() is not None:
            raise RefusedError(
                msg("error-server-runs-somebody-may-be", base=self.base),
                msg("remedy-stop-pgdyno-cluster-stop-or-2", base=self.base),
            )
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with signals_held():
            self._aside.close()
            self.stop()

    def start(self) -> None:
        """Start the server unless it runs, and wait until it accepts connections."""
        self._aside.close()
        super().start()

    def put_aside(self) -> None:
        """Stop the server and keep it stopped.

        Neither a load nor a start by another process can use the data directory in the meantime.
        """
        if self.is_alive():
            self.stop()
            self._aside.enter_context(datadir.kept_stopped(DataDirectory(self.data, self.binaries.major, self.account)))

    def _process(self, hold: Hold | None) -> ServerProcess:
        # The socket's folder may be another than when the settings were written.
        options = [f"unix_socket_directories={self.layout.socket}", *(f"{s.name}={s.value}" for s in self.settings)]
        program = self.binaries.program("postgres")
        # Patient: it is somebody's data, and may take its time to recover and to write its buffers.
        return ServerProcess(program, self.data, self.log, self.account, options=options, patient=True, hold=hold)
