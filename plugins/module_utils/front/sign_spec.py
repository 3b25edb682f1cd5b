# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A spec that is signed where Ansible runs: the module sign_spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import Fault, Refused
from ..core.host import Host
from ..plan.agreement import said
from ..plan.strict_json import short
from .result import of_fault

PEM = "-----BEGIN "  # openssl may print something above it
PRIVATE = "PRIVATE KEY"  # where it should not be
KEY_IS = "the PEM text of a private key, or a file that has it and that this account can read"


def run_sign(argument_spec: dict[str, Any]) -> None:
    """Sign by the module's options, and exit."""
    from .module import leave, start

    module = start(argument_spec, required_one_of=[["host", "devices"]])
    key = module.params["private_key"]
    if _names_file(key):
        # The name of a file is no secret, and masked it would be cut out of whatever has its letters: of the envelope.
        module.no_log_values.discard(key)
    module.no_log_values.update(one for one in module.params["certificates"] if PRIVATE in one)
    leave(module, sign_result(module.params))


def sign_result(params: Mapping[str, Any]) -> dict[str, Any]:
    """The result of the module: the envelope and what a host pins for it, or why no host would take it."""
    try:
        return _signed(params, Host())
    except Fault as fault:
        return of_fault(fault)


def _signed(params: Mapping[str, Any], here: Host) -> dict[str, Any]:
    from ..intent import signing
    from ..intent.envelope import rendered

    devices = None if params["devices"] is None else said(params["devices"])
    _check(params["host"], devices)
    text = signing.desired_state(params["node_id"], params["generation"], params["host"], devices)
    given = [_pem(here, f"certificates[{at}]", one) for at, one in enumerate(params["certificates"])]
    made = signing.sign(
        text, _key(here, params["private_key"]), signing.certificates(given), params["trust_bundle"], here.time()
    )
    return {"changed": False, "envelope": rendered(made.envelope), "root_sha256": made.root_sha256}


def _check(host: Mapping[str, Any] | None, devices: Sequence[Mapping[str, Any]] | None) -> None:
    """Raise Refused for what no host would apply, naming the first unit or assignment that is wrong."""
    if host is not None:
        from ..plan import wire
        from ..units import catalog

        for name, settings in wire.from_mapping(host).items():
            if isinstance(settings, Refused):
                raise settings
            catalog.unit(name).check(dict(settings))
    if devices is not None:
        from ..plan import assignment

        assignment.check({"assignments": list(devices)})


def _names_file(given: str) -> bool:
    """Whether it is the name of a file that is there, and surely no key, in whatever form."""
    import os

    return PEM not in given and os.path.isfile(_path(given))


def _key(here: Host, given: str) -> str:
    """The text of the private key; what was given is never shown, as it may be the key with a typing error."""
    if PEM in given:
        return given
    try:
        text = here.read(_path(given))
    except Fault:
        text = None
    if text is None:
        raise Refused(f"private_key is no such file, nor a key: give {KEY_IS}")
    return text


def _pem(here: Host, what: str, given: str) -> str:
    if PEM in given:
        return given
    try:
        text = here.read(_path(given))
    except Fault:
        text = None
    if text is None:
        raise Refused(
            f"{what}: there is no file {short(given)} that this account can read: give PEM texts, or files that have "
            "them"
        )
    return text


def _path(given: str) -> str:
    import os

    return os.path.expanduser(given)
