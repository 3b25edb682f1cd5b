# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary account's way to root: what a module was asked goes to bcd helper, and its result comes back.

Root plans everything itself, so that a request only says what is wanted, and the result is that of a run as root.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ..core import local_socket
from ..core.errors import Fault, Refused, StepFailed, Unreadable
from ..core.host import Host
from ..core.local_socket import LARGEST_REQUEST
from ..core.secret import UNNAMED, Given, Secret
from ..plan.installed import SOCKET
from ..plan.release import ONE_VERSION
from ..plan.unit_names import K8S_JOIN
from .opening import NO_MEMBER
from .options import DEVICES, HOST
from .single import Asked

ABOVE = ("/", "/run", "/run/bcd")  # who can write one of them can put a socket of their own in the helper's place
NOTHING = Given()
# What the answer to each op has, and its type; one without them is a refusal, or no answer.
ANSWERS: dict[str, dict[str, type]] = {
    "host.unit": {
        "unit": str,
        "changed": bool,
        "state": str,
        "pending": list,
        "reboot_required": bool,
        "conditions": list,
        "steps": list,
        "notes": list,
        "diff": list,
    },
    "host.section": {
        "changed": bool,
        "units": list,
        "unconverged": list,
        "todo": list,
        "secrets_needed": list,
        "reboot_required": bool,
        "section": dict,
        "diff": list,
        "ansible_stats": dict,
    },
    "devices": {"unit": str, "changed": bool, "state": str, "events": list, "steps": list, "diff": list},
    "host.info": {"changed": bool, "ansible_facts": dict},
}


def unit_by_helper(name: str, asked: Asked, check_mode: bool) -> dict[str, Any]:
    """The result of one unit; raises Fault."""
    settings = None if asked.settings is None else dict(asked.settings)
    request = {
        "op": "host.unit",
        "unit": name,
        "settings": settings,
        "signed_spec": asked.signed_spec,
        "max_disruption": asked.max_disruption,
        "check": check_mode,
        "node_id": asked.given.node_id or None,
        "site": asked.given.site or None,
    }
    token = next(iter(asked.given.secrets.values()), None) if name == K8S_JOIN and settings is not None else None
    return _result(request, asked.given, None if check_mode else token)


def section_by_helper(params: Mapping[str, Any], check_mode: bool, plans: bool) -> dict[str, Any]:
    """The result of the whole host; raises Fault."""
    from .given import to_section

    given = to_section(params)
    request = {
        "op": "host.section",
        **{name: params[name] for name in HOST if name != "secrets"},
        "plans": plans,
        "check": check_mode,
    }
    applies = not (check_mode or plans) and (params["only"] is None or K8S_JOIN in params["only"])
    return _result(request, given, _token(params, given) if applies and given.secrets else None)


def holds_by_helper(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The result of the devices' section; raises Fault."""
    return _result({"op": "devices", **{name: params[name] for name in DEVICES}, "check": check_mode})


def asked_of_helper(op: str, **fields: Any) -> dict[str, Any]:
    """The result of an op that takes these fields; raises Fault."""
    return _result({"op": op, **fields})


# -- the token of a join: it is no part of a request, root's pass finds it where it was laid for it


def _token(params: Mapping[str, Any], given: Given) -> Secret | None:
    """The one of the given secrets that the section's join refers to."""
    from .staged import join_of

    join = join_of(params)
    reference = join.get("joinTokenRef") if isinstance(join, Mapping) else None
    return given.secrets.get(reference if isinstance(reference, str) and reference else UNNAMED)


@contextmanager
def _laid(token: Secret | None) -> Iterator[None]:
    """Root has the token while it is asked for the pass, and no longer: another run may be given another one."""
    if token is None:
        yield
        return
    lay = {"op": "file.write", "kind": "k8s-token", "id": None}
    _told(_exchanged({**lay, "content": token.reveal()}), "file.write", {"changed": bool})
    try:
        yield
    finally:
        with suppress(Fault):  # the helper removes what a join has used, too
            _exchanged({**lay, "content": None})


# -- one request, and its answer


def _result(request: Mapping[str, Any], given: Given = NOTHING, token: Secret | None = None) -> dict[str, Any]:
    _refuse_planted(Host())
    op = request["op"]
    try:
        with _laid(token):
            answer = _exchanged(request)
        return _told(_masked(answer, given) if given.secrets else answer, op, ANSWERS.get(op, {"changed": bool}))
    except Refused as fault:
        raise Refused(given.masked(fault.message)) from None
    except StepFailed as fault:
        raise StepFailed(given.masked(fault.message), fault.retryable) from None


def _refuse_planted(host: Host) -> None:
    """Raise Refused where another account could have put its own socket in the helper's place."""
    for directory in ABOVE:
        seen = host.file(directory)
        if seen is not None and (seen.uid != 0 or seen.mode & 0o022):
            raise Refused(
                f"{directory} is not a directory only root can write, and what is sent to {SOCKET} is for root alone: "
                "make it root's, writable by no one else"
            )
    seen = host.file(SOCKET)
    if seen is not None and seen.uid != 0:
        raise Refused(
            f"{SOCKET} belongs to uid {seen.uid}, and what is sent there is for root alone: have root remove it, and "
            "restart bcd-helper.socket"
        )


def _exchanged(request: Mapping[str, Any]) -> Any:
    try:
        text = json.dumps(request, allow_nan=False)
    except (ValueError, RecursionError) as fault:
        raise Refused(f"the options cannot be sent to bcd helper ({fault}): correct them") from None
    if len(text) > LARGEST_REQUEST:
        raise Refused(
            f"the options are {len(text)} bytes, and bcd helper takes {LARGEST_REQUEST} in one request: give fewer "
            "units or assignments at once"
        )
    try:
        answer = local_socket.exchange(SOCKET, text.encode("ascii"))
    except Unreadable:
        raise StepFailed(NO_MEMBER) from None
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        why = "hung up before it had answered" if not answer else "gave no whole answer"
        raise StepFailed(
            f"bcd helper {why}: see journalctl -u bcd-helper.service for the reason, and run again"
        ) from None


def _told(answer: Any, op: str, keys: Mapping[str, type]) -> dict[str, Any]:
    """The answer where it is a result; raises the fault that it tells of, or one that says it is none."""
    if isinstance(answer, dict):
        is_whole = all(isinstance(answer.get(key), kind) for key, kind in keys.items())
        if is_whole and (len(keys) > 1 or "msg" not in answer):
            return answer
        if isinstance(answer.get("msg"), str) and answer["msg"]:
            if answer.get("reason") == "Refused":
                raise Refused(answer["msg"])
            raise StepFailed(answer["msg"], answer.get("retryable") is True)
    raise StepFailed(f"what bcd helper answers to {op} is no result of it: {ONE_VERSION}", retryable=False)


def _masked(value: Any, given: Given) -> Any:
    """The answer without the secrets, whatever a program said of them."""
    if isinstance(value, str):
        return given.masked(value)
    if isinstance(value, dict):
        return {given.masked(key): _masked(item, given) for key, item in value.items()}
    return [_masked(item, given) for item in value] if isinstance(value, list) else value
