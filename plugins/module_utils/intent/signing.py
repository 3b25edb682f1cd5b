# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other side of what hosts verify: a desired state, signed so that every host that pins the root takes it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..plan import canonical
from ..plan.section import in_order
from . import body
from .envelope import BUNDLE, MOST_BODY, MOST_CERTIFICATES, Envelope, envelope, rendered

CHAIN = "give the signer's own, then its issuers, and last the root that hosts pin"
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Signed(NamedTuple):
    """An envelope, and the SHA-256 digest of the DER of the root that it chains to: what hosts pin."""

    envelope: Envelope
    root_sha256: str


def desired_state(
    node_id: str,
    generation: int,
    host: Mapping[str, Mapping[str, Any]] | None,
    devices: Sequence[Mapping[str, Any]] | None,
) -> bytes:
    """The canonical text of a desired state, in which what is None is not managed.

    Raises Refused for what no host would read.
    """
    if not body.NODE_ID.fullmatch(node_id):
        raise Refused(f"node_id is {node_id!r}, and takes 1 to 128 letters, digits and _ . : -: correct it")
    if not 0 <= generation <= body.MOST:
        raise Refused(f"generation is {generation}, and takes an integer from 0 that has 63 bits: correct it")
    if host is None and devices is None:
        raise Refused("neither host nor devices is given, and a spec without both asks for nothing: give one of them")
    found: dict[str, Any] = {"kind": "DesiredState", "node_id": node_id, "generation": generation}
    if host is not None:
        found["host"] = [{"unit": unit, "settings": _text(unit, host[unit])} for unit in in_order(host)]
    if devices is not None:
        found["devices"] = list(devices)
    text = _text("devices", found).encode()
    if len(text) > MOST_BODY:
        raise Refused(f"host and devices make {len(text)} bytes, and hosts take {MOST_BODY}: ask for less in one spec")
    body.desired_state(text)
    return text


def certificates(texts: Sequence[str]) -> tuple[str, ...]:
    """Each certificate of these PEM texts by itself; raises Refused where there is none in one of them."""
    found: list[str] = []
    for number, text in enumerate(texts):
        inside = PEM.findall(text.replace("\r\n", "\n"))
        if not inside:
            raise Refused(
                f"certificates[{number}] has no certificate in PEM form: give the signer's first, the root last"
            )
        found += [one + "\n" for one in inside]
    if not 1 <= len(found) <= MOST_CERTIFICATES:
        raise Refused(f"certificates has {len(found)}, and hosts take up to {MOST_CERTIFICATES}: {CHAIN}")
    return tuple(found)


def sign(text: bytes, key: str, chain: Sequence[str], trust_bundle: Any, now: int) -> Signed:
    """The body in its envelope.

    `key` is the PEM text of the private key, `chain` the certificates from the signer's own to the root, `trust_bundle`
    the envelope of a bundle in its wire form or None, `now` unix time. Raises Refused where hosts would, and never with
    a word of the key.
    """
    from .certificates import load, pin_of
    from .signature import Signer
    from .verify import verify_chain

    signer = Signer("private_key", key)
    if pin_of(load(chain[0], "certificates[0]")) != signer.key_id:
        raise Refused(
            "private_key is not the key of the first certificate: give the key's own certificate first, then its "
            "issuers up to the root"
        )
    last = load(chain[-1], f"certificates[{len(chain) - 1}]")
    if len(chain) == 1 and last.subject != last.issuer:
        raise Refused(f"certificates has the signer's own alone: {CHAIN}")
    root = last.digest
    signature = base64.b64decode(signer.sign(body.DESIRED_STATE, text.decode()))
    wire = rendered(Envelope(text, signature, tuple(chain)))
    made = envelope(wire if trust_bundle is None else {**wire, BUNDLE: trust_bundle})
    try:
        verify_chain(made, body.DESIRED_STATE, frozenset({root}), body.WORKER, now)
    except Refused as fault:
        raise Refused(f"no host would take what these certificates vouch for: {fault.message}") from None
    if made.trust_bundle is not None:
        _check_bundle(made.trust_bundle, root)
    return Signed(made, root)


def _check_bundle(signed: Envelope, root: str) -> None:
    """Raise Refused for a bundle that its own signer did not sign, or by which this spec's root does not count."""
    from .certificates import load, pin_of
    from .verify import verify_pinned

    pin = pin_of(load(signed.certificates[0], "trust_bundle: certificates[0]"))  # which one hosts pin is theirs to say
    verify_pinned(signed, body.TRUST_BUNDLE, pin, "the trust bundle")
    bundle = body.trust_bundle(signed.body)
    if root not in bundle.command_roots:
        raise Refused(
            f"the trust bundle of version {bundle.version} has not the root {root} of these certificates, so no host "
            "would take the spec: give the bundle that has it, or sign with a key whose root it has"
        )


def _text(what: str, value: Any) -> str:
    try:
        return canonical.canonical(value)
    except ValueError as fault:
        raise Refused(f"{what}: {fault}, and nothing signed can be that: correct it") from None
