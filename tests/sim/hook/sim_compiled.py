# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Python compiles of what it is sent is kept for its next run, by the text that it was compiled from.

Ansible sends a module as an archive of sources, the program bcd comes as a stream of them, and each run compiles all
that it imports again: on a simulated host a quarter of what a pass costs, in an emulated machine half of it. The same
text always compiles to the same code, so the code of a text that was seen before is taken from a directory; where it
may not be written, nothing is kept. Code of another text, another Python or other optimization has another name.
"""

from __future__ import annotations

import _imp
import builtins
import marshal
import os
import sys
import types
import zipimport
from _frozen_importlib_external import MAGIC_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# So the names of the program's files begin: where it is carried (see carried_start), where it is installed.
PROGRAM = ("carried/", "/usr/lib/bcd/")


def name(source: bytes) -> str:
    """The file that has the code of a text."""
    import hashlib

    return f"{MAGIC_NUMBER.hex()}-{sys.flags.optimize}-{hashlib.sha256(source).hexdigest()[:40]}"


def keep_in(place: str) -> None:
    """From now on take what is imported out of archives and streams from this directory, and add what is not there."""
    compile_archived = zipimport._compile_source  # type: ignore[attr-defined]
    compile_any: Any = compile

    def archived(path: str, source: bytes) -> types.CodeType:
        return kept(place, path, source, lambda: compile_archived(path, source))

    def any_source(source: Any, filename: Any, mode: str, *words: Any, **named: Any) -> Any:
        def make() -> Any:
            return compile_any(source, filename, mode, *words, **named)

        is_ours = isinstance(filename, str) and filename.startswith(PROGRAM) and isinstance(source, bytes)
        is_usual = mode == "exec" and named.get("optimize", -1) == -1
        return kept(place, filename, source, make) if is_ours and is_usual else make()

    zipimport._compile_source = archived  # type: ignore[attr-defined]
    builtins.compile = any_source


def kept(place: str, path: str, source: bytes, make: Callable[[], types.CodeType]) -> types.CodeType:
    """The code of a text: what is stored, or what `make` makes of it, which is stored then."""
    file = os.path.join(place, name(source))
    try:
        with open(file, "rb") as stored:
            known: types.CodeType = marshal.loads(stored.read())
        _imp._fix_co_filename(known, path)  # type: ignore[attr-defined]
        return known
    except (OSError, EOFError, ValueError, TypeError):
        pass
    code = make()
    try:
        with open(f"{file}.{os.getpid()}", "wb") as out:
            out.write(marshal.dumps(code))
        os.rename(out.name, file)  # whole or not at all
    except OSError:
        pass
    return code
