# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who signed an envelope: a worker whose certificate chains to a root that counts here, or the one key that is pinned.

Nothing in the body is looked at.
"""

from __future__ import annotations

from ..core.errors import Refused
from .certificates import hold_chain, load, pin_of, refuse_as_signer, refuse_unfit
from .envelope import Envelope
from .signature import is_signed


def verify_chain(envelope: Envelope, purpose: str, roots: frozenset[str], role: str, now: int | None) -> None:
    """Raise Refused unless a holder of the role signed it, by a chain to one of the roots (SHA-256 of DER, in hex).

    `now` is unix time; None where the dates of certificates are not to count.
    """
    chain = [load(pem, f"signed_spec.certificates[{n}]") for n, pem in enumerate(envelope.certificates)]
    hold_chain(chain, roots, now)
    refuse_unfit(chain[0])
    refuse_as_signer(chain[0], role)
    if not is_signed(chain[0].key, envelope.signature, purpose, envelope.body):
        raise Refused(
            f"the signature of signed_spec does not verify: {chain[0].at} did not sign this body as a {purpose}: take "
            "the envelope as sign_spec returned it"
        )


def verify_pinned(envelope: Envelope, purpose: str, pin: str, what: str) -> None:
    """Raise Refused unless the pinned key ("sha256/" and base64) signed it; the pin is the trust, no chain or date is.

    `what` names the envelope in messages ("the trust bundle").
    """
    signer = load(envelope.certificates[0], f"{what}: certificates[0]")
    found = pin_of(signer)
    if found != pin:
        raise Refused(
            f"{what} is signed with the key {found}, and root's config.toml pins {pin}: give one that the pinned key "
            "signed, or have root pin this key"
        )
    refuse_unfit(signer)
    if not is_signed(signer.key, envelope.signature, purpose, envelope.body):
        raise Refused(
            f"the signature of {what} does not verify: the pinned key did not sign this body as a {purpose}: take it "
            "as it was issued"
        )
