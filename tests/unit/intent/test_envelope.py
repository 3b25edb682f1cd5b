# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The envelope's wire form: one form of it, and everything else refused by its place."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.envelope import Envelope, envelope, rendered

WHOLE: dict[str, Any] = {"body": "e30=", "signature": "AAEC", "certificates": ["one", "two"]}
ADVICE = ": take the envelope as sign_spec returned it"
OF_ANOTHER = ": take it as the control plane issued it"  # sign_spec makes no join record and no bundle


def refused(value: Any, what: str = "signed_spec") -> str:
    with pytest.raises(Refused) as raised:
        envelope(value, what)
    signs = what == "signed_spec" and not raised.value.message.startswith("signed_spec.trust_bundle")
    advice = ADVICE if signs else OF_ANOTHER
    assert raised.value.message.endswith(advice)
    return raised.value.message[: -len(advice)]


def test_the_envelope_and_its_bundle() -> None:
    bundle = {"body": "e30=", "signature": "AA==", "certificates": ["three"]}
    read = envelope({**WHOLE, "trust_bundle": bundle})
    inside = Envelope(b"{}", b"\0", ("three",))
    assert read == Envelope(b"{}", b"\0\1\2", ("one", "two"), inside)
    assert rendered(read) == {**WHOLE, "trust_bundle": bundle}
    assert envelope(rendered(read)) == read


def test_a_bundle_that_is_null_is_none() -> None:
    assert envelope({**WHOLE, "trust_bundle": None}) == envelope(WHOLE)
    assert rendered(envelope({**WHOLE, "trust_bundle": None})) == WHOLE


@pytest.mark.parametrize("value", [None, "", "{}", [], ["body"], 7, True, b"{}"])
def test_what_is_no_mapping(value: Any) -> None:
    assert refused(value) == "signed_spec is no mapping of body, signature, certificates"


@pytest.mark.parametrize("name", ["body", "signature", "certificates"])
def test_a_field_that_is_missing(name: str) -> None:
    assert refused({key: value for key, value in WHOLE.items() if key != name}) == f"signed_spec has no {name}"


def test_a_field_that_is_unknown() -> None:
    assert refused({**WHOLE, "Body": "e30="}) == "signed_spec has 'Body', which is no field of it"
    assert refused({**WHOLE, 7: "e30="}) == "signed_spec has 7, which is no field of it"
    assert len(refused({**WHOLE, **{"x" * 1000 + str(n): "" for n in range(100)}})) < 500


def test_a_bundle_has_no_bundle() -> None:
    assert refused({**WHOLE, "trust_bundle": {**WHOLE, "trust_bundle": WHOLE}}) == (
        "signed_spec.trust_bundle has 'trust_bundle', which is no field of it"
    )
    assert refused({**WHOLE, "trust_bundle": WHOLE}, "the join record") == (
        "the join record has 'trust_bundle', which is no field of it"
    )


@pytest.mark.parametrize("name", ["body", "signature"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "e30",
        "e30=\n",
        " e30=",
        "e3 0=",
        "e31=",
        "e30==",
        "e30=e30=",
        "-_-_",
        "é30=",
        "\udc80",
        None,
        7,
        b"e30=",
        [],
    ],
    ids=repr,
)
def test_one_text_in_base64_a_value(name: str, text: Any) -> None:
    """RFC 4648, 3.5: the unused bits are zero; 4: the alphabet, and the padding."""
    assert refused({**WHOLE, name: text}) == f"signed_spec.{name} is no text in base64"


def test_the_largest_that_is_taken() -> None:
    most = base64.b64encode(b"x" * 1024 * 1024).decode()
    assert len(envelope({**WHOLE, "body": most}).body) == 1024 * 1024
    more = base64.b64encode(b"x" * (1024 * 1024 + 3)).decode()
    assert refused({**WHOLE, "body": more}).endswith("and more than 1048576 bytes are not taken")
    more = base64.b64encode(b"x" * 1030).decode()
    assert refused({**WHOLE, "signature": more}) == (
        "signed_spec.signature has 1376 characters, and more than 1024 bytes are not taken"
    )


def test_the_most_certificates_and_the_longest() -> None:
    most = ["x" * 16 * 1024] * 8
    assert envelope({**WHOLE, "certificates": most}).certificates == tuple(most)


@pytest.mark.parametrize("value", [[], (), "one", None, {"0": "one"}, ["x"] * 9, 7])
def test_what_is_no_list_of_certificates(value: Any) -> None:
    assert refused({**WHOLE, "certificates": value}) == "signed_spec.certificates is no list of 1 to 8 certificates"


@pytest.mark.parametrize("value", [None, 7, b"one", "x" * (16 * 1024 + 1), ["one"]])
def test_what_is_no_certificate(value: Any) -> None:
    assert refused({**WHOLE, "certificates": ["one", value]}) == (
        "signed_spec.certificates[1] is no certificate in PEM form of at most 16384 characters"
    )


def test_a_fault_in_the_bundle_names_it() -> None:
    assert refused({**WHOLE, "trust_bundle": {**WHOLE, "body": 7}}) == (
        "signed_spec.trust_bundle.body is no text in base64"
    )
    assert refused({**WHOLE, "trust_bundle": []}).startswith("signed_spec.trust_bundle is no mapping")
