# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap token of a join, laid where root alone reads it for a pass that nobody can give one: of bcd helper,
whose requests hold no secrets, and of bcd agent.

It is the secret of whatever reference k8s-join names, and goes once the machine has joined, or is handed back.
"""

from __future__ import annotations

from ..core.errors import Fault, Refused
from ..core.host import Host
from ..core.secret import UNNAMED
from ..core.state import JOIN_TOKEN
from ..plan.unit_names import K8S_JOIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FILE = JOIN_TOKEN


def refuse_other(text: str) -> None:
    """Raise Refused for what has not the form of a bootstrap token, without showing it."""
    from ..plan.k8s_join_settings import TOKEN

    if not TOKEN.fullmatch(text):
        raise Refused(
            "file.write of the kind k8s-token: its content has not the form of a bootstrap token (6 and 16 lower-case "
            "letters and digits with a dot between): see where it comes from"
        )


def secrets(host: Host, join: Any) -> dict[str, str]:
    """The staged token by the reference in these settings of k8s-join (None: there are none), {} where none is staged.

    Which reference that is may be told by somebody whom nobody trusts: the token goes where settings have it that do.
    """
    reference = join.get("joinTokenRef") or UNNAMED if isinstance(join, dict) else ""
    if not isinstance(reference, str) or not reference:
        return {}
    token = (host.read(FILE) or "").strip()
    return {reference: token} if token else {}


def with_token(host: Host, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of host_section with the staged token as the secret of their join."""
    return {**options, "secrets": secrets(host, join_of(options))}


def join_of(options: Mapping[str, Any]) -> Any:
    """The settings of k8s-join that a pass is asked for, by units, wire_units or a signed spec; what is wrong with them
    others say."""
    from ..plan import wire

    try:
        if options.get("units") is not None:
            return options["units"].get(K8S_JOIN)
        if options.get("wire_units") is not None:
            return wire.from_list(options["wire_units"]).get(K8S_JOIN)
        if options.get("signed_spec") is not None:
            from ..intent.body import desired_state
            from ..intent.envelope import envelope

            return (desired_state(envelope(options["signed_spec"]).body).host or {}).get(K8S_JOIN)
    except Refused:
        pass
    return None


def forget(host: Host, units: Iterable[Mapping[str, Any]], leaves: bool = False) -> None:
    """Remove the token that nothing needs any more: the machine has joined, or `leaves` the cluster, or the cluster has
    said that it is none, so that the next pass asks for another one.

    Behind each pass, so that the next one removes what one left that was killed; but for one that is refused, by its
    `units`' results, which writes nothing. What keeps it there is no fault of the pass: another one comes.
    """
    results = list(units)
    if all(unit.get("reason") == "Refused" for unit in results):
        return
    try:
        if host.file(FILE) is not None and (leaves or _is_none(results) or _has_joined(host)):
            host.remove(FILE)
    except (Fault, OSError):
        pass


def _is_none(results: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a join came to nothing for its token, by what it says to do."""
    from ..plan.join_faults import TOKEN

    return any(TOKEN in str(unit.get("msg", "")) for unit in results if unit.get("unit") == K8S_JOIN)


def _has_joined(host: Host) -> bool:
    from ..core.records import Records
    from ..look.kube_join import member

    return member(host, Records(host).past(K8S_JOIN)) is not None
