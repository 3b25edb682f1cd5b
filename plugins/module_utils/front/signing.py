# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of holds, read from the journal and signed there with the node's key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Fault, NotKnownYet, Refused
from ..core.host import Host, advice
from ..look.events import events
from ..plan.devices_seen import Event
from ..plan.events import ATTESTED, PURPOSE, path_of, text_of
from ..plan.holds import RECORDS


class Signing:
    """The signing of the journal's reports with the node's key; nothing where no key is given."""

    def __init__(self, params: Mapping[str, Any], host: Host) -> None:
        self._host = host
        self._path: str | None = params["signing_key"]
        self._signer: Any = None
        self._pem = ""
        self.done = False
        self.fault = ""

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Look at the key, and load it where the pass is to sign; raises Refused."""
        if self._path is None:
            return
        from ..look.signing_key import signing_key

        if "assignments" in settings and not settings.get("node_id"):
            raise Refused("signing_key is given without node_id, and a signed report names its node: give node_id too")
        try:
            self._pem = signing_key(self._host, self._path)
            due = self._is_due(settings)
        except NotKnownYet:  # root sees it
            return
        if due:
            self._load()

    def _is_due(self, settings: Mapping[str, Any]) -> bool:
        """Whether something is to be signed, or a hold comes or goes; a quiet pass imports no cryptography."""
        wanted = {
            f"{each['allocation_id']}.json" for each in settings.get("assignments", ()) if "allocation_id" in each
        }
        held = {name for name in self._host.names(RECORDS) if name.endswith(".json")}
        moves = "assignments" in settings and wanted != held
        return moves or any(map(_is_unsigned, journal(self._host)))

    def _load(self) -> Any:
        if self._signer is None:
            from ..intent.signature import Signer

            self._signer = Signer(self._path or "", self._pem)
        return self._signer

    def sign(self) -> None:
        """Sign what is not signed yet, and keep the signatures: a report is never signed twice."""
        if self._path is None:
            return
        try:
            for event in filter(_is_unsigned, journal(self._host)):
                key = self._load()
                signed = event._replace(signature=key.sign(PURPOSE, event.body), key_id=key.key_id)
                self._host.write(path_of(event.id), text_of(signed), 0o600)
                self.done = True
        except Fault as fault:
            self.fault = fault.message
        except OSError as fault:
            self.fault = f"cannot keep the signature of an event: {fault.strerror}{advice(fault)}"

    def allowed(self, found: tuple[Event, ...]) -> tuple[Event, ...]:
        """The events that may be returned: where a key is given, none that is still to be signed."""
        return found if self._path is None else tuple(event for event in found if not _is_unsigned(event))


def journal(host: Host) -> tuple[Event, ...]:
    """The events that wait to be acknowledged, and can be made out."""
    return tuple(event for event in events(host) if not event.fault and not event.acknowledged)


def seen(host: Host) -> tuple[Event, ...]:
    """The same, as far as this account may see them."""
    try:
        return journal(host)
    except (Fault, NotKnownYet):  # the look says so too
        return ()


def _is_unsigned(event: Event) -> bool:
    return event.type in ATTESTED and not event.signature
