# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of other files that set kernel parameters of ours after our own."""

from __future__ import annotations

from collections.abc import Iterable

from .kernel_parameters import Key, Rival, same, shortened

LATER = "{file} sets {name} = {value} after {ours}, and wins at a boot until the next pass: take it out of there"
PLAIN_FILE = "{file} sets {name} = {value}, and wins whenever sysctl --system reads it: take it out of there"
UNREAD = "{file} cannot be read: whether it sets a parameter to another value than {ours} is not known"


def rival_notes(keys: Iterable[Key], rivals: Iterable[Rival], ours: str) -> list[str]:
    """Who else sets our keys, where the last file to do so sets another value; `ours`: the file that has them."""
    rivals = tuple(rivals)
    notes = [UNREAD.format(file=rival.file, ours=ours) for rival in rivals if rival.values is None]
    for key in keys:
        others = [
            (rival.file, rival.values[key.path])
            for rival in rivals
            if rival.values is not None and key.path in rival.values
        ]
        if others and not same(key.value, others[-1][1]):
            file, value = others[-1]
            sentence = PLAIN_FILE if file == "/etc/sysctl.conf" else LATER
            notes.append(sentence.format(file=file, name=key.name, value=shortened(value), ours=ours))
    return notes
