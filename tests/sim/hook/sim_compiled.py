# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Python compiles out of an archive is kept for its next run, by the text that it was compiled from.

Ansible sends a module as an archive of sources, and each run compiles all that it imports again: on a simulated host a
quarter of what a pass costs, in an emulated machine half of it. The same text always compiles to the same code, so the
code of a text that was seen before is taken from a directory; where it may not be written, nothing is kept. Code of
another text, another Python or other optimization has another name.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
import types
import zipimport
from _frozen_importlib_external import MAGIC_NUMBER


def name(source: bytes) -> str:
    """The file that has the code of a text."""
    import hashlib

    return f"{MAGIC_NUMBER.hex()}-{sys.flags.optimize}-{hashlib.sha256(source).hexdigest()[:40]}"


def keep_in(place: str) -> None:
    """From now on take what is imported out of archives from this directory, and add to it what is not there."""
    compile_source = zipimport._compile_source  # type: ignore[attr-defined]

    def compiled(path: str, source: bytes) -> types.CodeType:
        kept = os.path.join(place, name(source))
        try:
            with open(kept, "rb") as stored:
                known: types.CodeType = marshal.loads(stored.read())
            _imp._fix_co_filename(known, path)  # type: ignore[attr-defined]
            return known
        except (OSError, EOFError, ValueError, TypeError):
            pass
        code: types.CodeType = compile_source(path, source)
        try:
            with open(f"{kept}.{os.getpid()}", "wb") as out:
                out.write(marshal.dumps(code))
            os.rename(out.name, kept)  # whole or not at all
        except OSError:
            pass
        return code

    zipimport._compile_source = compiled  # type: ignore[attr-defined]
