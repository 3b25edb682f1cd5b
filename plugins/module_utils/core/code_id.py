# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which code of the project runs: the same name for the same code, another for any other."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ABOVE = __name__[: -len(".core.code_id")]
RECORD = "program.sha256"  # beside the package where it is installed (see plan.installed): of the zip that it came from
LONGEST = 64  # digits of SHA-256
DIGITS = frozenset("0123456789abcdef")


def code_id() -> str:
    """Hexadecimal digits that name the code; "" where it may change while it has one name, as in a tree of sources.

    A zip has the CRC of each of its files in its directory, and the import has read that.
    """
    archive = getattr(globals().get("__loader__"), "archive", "")
    return _of_zip(archive) if archive else _of_program()


def _of_zip(archive: str) -> str:
    from .question import hexdigest

    entries: dict[str, Any] = getattr(sys.modules["zipimport"], "_zip_directory_cache", {}).get(archive, {})
    inside = f"{ABOVE.replace('.', '/')}/"
    ours = sorted((name, entry[3], entry[7]) for name, entry in entries.items() if name.startswith(inside))
    return hexdigest(repr(ours).encode()) if ours else ""


def _of_program() -> str:
    folder = str(globals().get("__file__", "")).rpartition("/core/")[0].rpartition("/")[0]
    try:  # a program that is carried to a host has its record in memory
        found = __loader__.get_data(f"{folder}/{RECORD}").decode("ascii").strip()  # type: ignore[name-defined]
    except (AttributeError, OSError, ValueError):
        return ""
    return found if len(found) == LONGEST and DIGITS.issuperset(found) else ""
