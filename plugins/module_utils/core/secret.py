# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets: values that a step needs and that nothing may show.

A plan names a secret by its reference, and has SLOT where it goes; the runner puts it in at the last moment. So no
step, record, difference or question ever holds one, and what programs say of it is masked.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NamedTuple

    from .step import Step
else:
    from .named import NamedTuple

SLOT = "<the secret>"  # what stands in a step's input in the place of the secret
UNNAMED = "token"  # what a secret goes by where the settings have no reference for it
IN_SECRETS = "it in secrets (with the role: bcd_converge_join_token)"
MASK = "***"
SHORTEST = 6  # characters: anything shorter is a word like others


class Secret:
    """A value that shows itself as `***`; equal to another of the same value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    @property
    def digest(self) -> str:
        """By which one secret is told from another in a record: the beginning of its SHA-256."""
        import hashlib  # for the few hosts that have a secret to tell

        return hashlib.sha256(self._value.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Given(NamedTuple):
    """What a run was given beside the settings: secrets by their reference, and the control plane's names for this
    node and its site ("" where it was not said).

    `option` is the module's own that takes the one secret of its unit; "" where secrets go by their references.
    """

    secrets: Mapping[str, Secret] = {}
    node_id: str = ""
    site: str = ""
    option: str = ""

    def missing(self, reference: str, predicted: bool = False) -> str:
        """Which secret was not given, and what to do, as the end of a sentence; a prediction only says what will be."""
        which, where = ("a secret", self.option) if self.option else (f"the secret {reference!r}", IN_SECRETS)
        return f"{which}, which {'is to be given then' if predicted else f'was not given: give {where} and run again'}"

    def filled(self, step: Step) -> Step:
        """The step with its secret in its place, where it was given."""
        secret = self.secrets.get(step.secret)
        return step if secret is None else step._replace(text=step.text.replace(SLOT, secret.reveal()))

    def masked(self, text: str) -> str:
        """The text without the secrets, and without the part behind the point of one such as a bootstrap token."""
        for secret in self.secrets.values():
            for part in (secret.reveal(), secret.reveal().rpartition(".")[2]):
                if len(part) >= SHORTEST:
                    text = text.replace(part, MASK)
        return text
