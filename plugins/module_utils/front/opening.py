# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host opened for one pass: locked, or in check mode predicted, and only where root's configuration allows it."""

from __future__ import annotations

from ..core import host as machine
from ..core.code_id import code_id
from ..core.errors import NotKnownYet, StepFailed, Unreadable
from ..core.lock import only_pass
from ..core.records import Records
from ..core.watched import Beside, Watched
from ..look.config import refuse_if_outside
from ..plan.installed import GROUP, HELPER_SOCKET, SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_ROOT = (
    "node-unprivileged: this account is not root, and bcd helper, which would be root for it, does not run here: set "
    f"become: true, or enroll the host with its helper (where it has one, have root start {HELPER_SOCKET})"
)
NO_MEMBER = (
    f"bcd helper does not take this account, which is not in the group of {SOCKET}: have root add it to the group "
    f"{GROUP}, and log in anew"
)


def asks_helper() -> bool:
    """Whether this process is not root and a helper would be for it; raises StepFailed where it must not see that."""
    real = machine.Host()
    if real.uid() == 0:
        return False
    try:
        return real.file(SOCKET) is not None
    except Unreadable as fault:
        raise (StepFailed(NO_MEMBER) if fault.denied else fault) from None


class opened:  # noqa: N801 - a function to those who use it; contextlib would cost each pass its import
    """The host and its records, for one pass of `what` ("host_section").

    `outside`: also on a host that root's configuration keeps us off.
    """

    def __init__(self, check_mode: bool, what: str, outside: bool = False) -> None:
        self._check_mode, self._what, self._outside = check_mode, what, outside
        self._lock: only_pass | None = None
        self._recall: Any = None

    def __enter__(self) -> tuple[machine.Host, Records]:
        real = machine.Host()
        host = watched(real)
        if self._check_mode:
            return _predicted(host, self._outside)
        if real.uid() != 0:
            raise StepFailed(NO_ROOT)
        _refuse(host, self._outside)
        lock = only_pass(real, self._what)
        lock.__enter__()
        self._lock, self._recall = lock, host.recall
        host.begin_anew()  # another pass may have had the lock
        return host, Records(Beside(real, host))

    def __exit__(self, *fault: object) -> None:
        if self._lock is None:
            return
        try:
            if self._recall is not None:
                self._recall.save()
        finally:
            self._lock.__exit__(*fault)


def watched(real: machine.Host) -> Watched:
    """The machine, asked each thing once; with earlier quiet turns, where the code that runs has a name."""
    host = Watched(real)
    code = code_id()
    if code:
        from .recall import Recall

        host.recall = Recall(host, code)
    return host


def _predicted(real: machine.Host, outside: bool) -> tuple[machine.Host, Records]:
    from ..core.predict import PredictedHost

    predicted = PredictedHost(real)
    try:
        _refuse(predicted, outside)
    except NotKnownYet:  # an unprivileged look: root's configuration decides when root comes
        pass
    return predicted, Records(predicted)


def _refuse(host: machine.Host, outside: bool) -> None:
    if not outside:
        refuse_if_outside(host)
