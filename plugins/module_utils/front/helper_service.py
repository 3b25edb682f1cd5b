# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`bcd helper`: root's side of a login that is not root, on the socket that systemd hands it.

A request says what is wanted, and no more: everything is looked at, planned and judged here again, by the code that the
modules run as root. Root's configuration is read for each request. The service ends when nobody has asked for a minute,
so that the next request meets the program that is installed then.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from typing import Any

from ..core import host as machine
from ..core.errors import Fault, Refused, StepFailed
from ..core.local_server import BOUNDS, Bounds, Server, Service
from ..core.local_socket import Peer, is_member
from ..core.outcome import our_fault
from ..look.config import config
from ..plan.installed import CONFIG, ENROLL, GROUP
from ..plan.pins import pins
from ..plan.release import VERSION
from ..plan.unit_names import K8S_JOIN
from . import request as asking
from .result import failed, of_fault, render, valid

HANDED = 3  # the descriptor that systemd passes first, SD_LISTEN_FDS_START of sd_listen_fds(3)
MOST_EVENTS = 10_000  # that wait to be acknowledged
NOT_STARTED = "bcd helper does not start: "


def serve() -> int:
    """Serve the socket that systemd handed us until nobody asks; the exit status.

    What keeps root from serving is said to those who wait as well, so that systemd does not start us again for them.
    """
    try:
        if machine.Host().uid() != 0:
            raise Refused("it is root's side of other accounts, and this account is not root: systemd starts it")
        listener = _handed()
    except Fault as fault:
        say(NOT_STARTED + fault.message)
        return 1
    os.umask(0o022)
    os.chdir("/")
    return run(listener)


def run(listener: socket.socket, bounds: Bounds = BOUNDS) -> int:
    """Serve a listening socket, where root's configuration lets us."""
    server = Server(listener, Service(admits, answer, refusal), bounds)
    try:
        refuse_to_start(machine.Host())
    except Fault as fault:
        say(NOT_STARTED + fault.message)
        server.turn_away(NOT_STARTED + fault.message)
        return 1
    server.run()
    return 0


def refuse_to_start(host: machine.Host) -> None:
    """Raise Refused where root's configuration is not root's alone, is not there, or has what it cannot have."""
    from ..plan.allowed_clusters import clusters

    tables = config(host)
    if host.file(CONFIG) is None:
        raise Refused(
            f"{CONFIG} must be a regular file root owns that no one else can write, and it is not there: enroll the "
            f"host ({ENROLL})"
        )
    pins(tables)
    clusters(tables.get("kubernetes", {}).get("allowed_clusters", ""))


def _handed() -> socket.socket:
    """The socket of sd_listen_fds(3), which must be one, and this process's."""
    if os.environ.pop("LISTEN_PID", "") != str(os.getpid()) or os.environ.pop("LISTEN_FDS", "") != "1":
        raise Refused("systemd has handed it no socket: run systemctl start bcd-helper.socket, which starts it")
    try:
        listener = socket.socket(fileno=HANDED)
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as fault:
        raise Refused(f"what systemd has handed it is no socket ({fault.strerror}): see bcd-helper.socket") from None
    if not listens or listener.family != socket.AF_UNIX or listener.type != socket.SOCK_STREAM:
        raise Refused("what systemd has handed it is no listening unix socket: see ListenStream of bcd-helper.socket")
    listener.set_inheritable(False)
    return listener


# -- one request


def admits(peer: Peer) -> str:
    """Why a peer is not served, "" where it is: root, and the group's members."""
    if peer.uid == 0 or is_member(peer, GROUP):
        return ""
    return f"uid {peer.uid} is not root, nor in the group {GROUP}: have root add the account to the group"


def answer(data: bytes, peer: Peer) -> bytes:
    """The answer to what was sent, one JSON object. Never raises: a fault of ours is one answer's alone."""
    asked: asking.Request | None = None
    try:
        asked = asking.request(data)
        result = _result(asked)
    except Fault as fault:
        result = of_fault(fault)
    except Exception as fault:  # noqa: BLE001 - whatever it is, somebody waits for an answer
        say(f"a fault of the collection's own for uid {peer.uid}: {type(fault).__name__}")
        result = of_fault(StepFailed(f"bcd helper: {our_fault(fault)}", retryable=False))
    say(f"{_subject(asked)} for uid {peer.uid}: {_outcome(result)}")
    return _text(result)


def refusal(why: str, retryable: bool, peer: Peer) -> bytes:
    """The answer to what was not even read, or came to nothing."""
    say(f"a request for uid {peer.uid}: {why}")
    return _text(of_fault(StepFailed(why) if retryable else Refused(why)))


def _result(asked: asking.Request) -> dict[str, Any]:
    if isinstance(asked, asking.UnitRequest):
        return _unit(asked)
    if isinstance(asked, asking.SectionRequest):
        return _section(asked)
    if isinstance(asked, asking.DevicesRequest):
        return _devices(asked)
    if isinstance(asked, asking.IntentRequest):
        from .host_intent import intent_result

        return intent_result(asked.signed_spec)
    if isinstance(asked, asking.FileRequest):
        from .helper_files import file_result

        return file_result(asked)
    if isinstance(asked, asking.SliceRequest):
        from .helper_files import slice_result

        return slice_result(asked)
    return _look(asked.op)


def _unit(asked: asking.UnitRequest) -> dict[str, Any]:
    from ..units.catalog import unit
    from .given import to_unit
    from .single import Asked, unit_result

    try:
        found = unit(asked.unit)
    except Refused as fault:
        return render(failed(asked.unit, fault))
    names = {"node_id": asked.node_id, "site": asked.site}
    if asked.unit != K8S_JOIN:
        wanted = Asked(asked.settings, asked.signed_spec, asked.max_disruption, to_unit(names))
        return unit_result(found, wanted, asked.check)
    from . import staged

    host = machine.Host()
    join = asked.settings or staged.join_of({"signed_spec": asked.signed_spec})
    reference, token = next(iter(staged.secrets(host, join).items()), ("", ""))
    given = to_unit({**names, "join_token_ref": reference, "token": token})
    result = unit_result(found, Asked(asked.settings, asked.signed_spec, asked.max_disruption, given), asked.check)
    if not asked.check:
        staged.forget(host, [result], leaves=asked.settings is None)
    return result


def _section(asked: asking.SectionRequest) -> dict[str, Any]:
    from . import staged
    from .section import section_result

    host, params = machine.Host(), asked.params
    result = section_result(staged.with_token(host, params), asked.check, asked.plans)
    if not (asked.check or asked.plans):
        staged.forget(host, result["units"])
    return result


def _devices(asked: asking.DevicesRequest) -> dict[str, Any]:
    from .holds import holds_result

    key = asked.params["signing_key"]
    ours = config(machine.Host()).get("", {}).get("signing_key") if key is not None else None
    if key != ours:
        raise Refused(
            f"signing_key is {asking.shown(key)}, and bcd helper signs with no other key than that of signing_key in "
            f"{CONFIG}: have root name it there, or leave it out"
        )
    if asked.params["assignments"] is not None:
        _refuse_unread(machine.Host())
    return holds_result(asked.params, asked.check)


def _refuse_unread(host: machine.Host) -> None:
    """Raise Refused where more reports wait than a host comes to: each pass could add some, and nobody reads them."""
    from ..plan.events import EVENTS

    if len(host.names(EVENTS)) < MOST_EVENTS:
        return
    from .signing import journal

    waiting = len(journal(host))
    if waiting >= MOST_EVENTS:
        raise Refused(
            f"{waiting} events in {EVENTS} wait to be acknowledged, and bcd helper adds none: have them read, and give "
            "their ids in acknowledge alone"
        )


def _look(op: str) -> dict[str, Any]:
    if op == "host.status":
        from .status import status_result

        return status_result()
    if op == "host.doctor":
        from .doctor import doctor_result

        return doctor_result()
    from .info import info_result

    return info_result()


def _text(result: dict[str, Any]) -> bytes:
    return json.dumps(valid(result)).encode()


# -- what the journal is told: nothing that somebody else has written


def say(line: str) -> None:
    """A line of the service's."""
    plain = "".join(character if character.isprintable() else "?" for character in line)
    with suppress(OSError):  # a journal that is gone is no reason not to answer
        os.write(2, f"{plain}\n".encode("utf-8", "replace"))


def _subject(asked: asking.Request | None) -> str:
    """What is asked, in words of ours."""
    if asked is None:
        return f"what is no request to bcd helper {VERSION}"
    name = asking.name_of(asked)
    more = " (check)" if getattr(asked, "check", False) else ""
    return f"{name} {asked.unit}{more}" if isinstance(asked, asking.UnitRequest) else f"{name}{more}"


def _outcome(result: dict[str, Any]) -> str:
    """How it ended: a reason where it failed, else a state."""
    section = result.get("section")
    state = section.get("state", "").lower() if isinstance(section, dict) else result.get("state", "done")
    found = str(result.get("reason", "failed")) if "msg" in result else str(state)
    return f"{found}, changed" if result.get("changed") is True else found
