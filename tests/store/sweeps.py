"""One step of each sweep: kill a writer at a point, or take up one state after a power cut."""

from __future__ import annotations

import os
import signal
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.store.verify import verify_dictionary
from tests.store.crashing_disk import CountingDisk, KillingDisk
from tests.store.other_readers import check_h5dump, check_pyfive
from tests.store.workload import BATCHES, check_featpipe, check_plain, finish, write_batches

if TYPE_CHECKING:
    from tests.store.power_loss import Image


def points_of_the_workload(folder: Path) -> int:
    """How many write-like calls the workload makes."""
    disk = CountingDisk()
    write_batches(folder / "count.h5", disk, lambda _: None)
    return disk.n_points


def killed_at(point: int, path: Path, *, is_torn: bool) -> tuple[int, bool]:
    """Run the workload in a child that kills itself; (batches acknowledged, whether it did)."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            disk = KillingDisk(point, is_torn=is_torn)
            write_batches(path, disk, lambda _: os.write(writing, b".") and None)
        except BaseException:  # an error in the child is shown with the test that failed
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        n_acknowledged = len(pipe.read())
    _, status = os.waitpid(child, 0)
    return n_acknowledged, os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def check_after_kill(path: Path, n_acknowledged: int, *, with_h5dump: bool) -> None:
    """No repair, no lag, no loss; then the next writer goes on and ends with everything."""
    if not path.exists():
        assert not n_acknowledged
        return
    check_plain(path, n_acknowledged)
    check_featpipe(path, n_acknowledged)
    found = verify_dictionary(path, is_deep=True, asks_libhdf5=False)
    assert found.is_good, f"a killed writer leaves no damage: {found}"
    if with_h5dump:
        check_h5dump(path)
        check_pyfive(path)
    finish(path)
    check_featpipe(path, len(BATCHES))
    check_plain(path, n_acknowledged)
    path.unlink()


def check_state(image: Image, n_acknowledged: int, path: Path) -> None:
    """Readable as it is, complete once a writer has opened it."""
    image.save(path)
    check_plain(path, n_acknowledged, may_lag=True)
    check_featpipe(path, n_acknowledged, may_lag=True)
    finish_opening(path)
    check_plain(path, n_acknowledged)
    check_featpipe(path, n_acknowledged)
    finish(path)
    check_featpipe(path, len(BATCHES))


def finish_opening(path: Path) -> None:
    from featpipe.store import Writer

    with Writer.open(path) as writer:
        assert writer.recovery is None or not writer.recovery.damaged
