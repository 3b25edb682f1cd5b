# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the documentation of every plugin and role as pages: .build/docs/rst, and .build/docs/html from them.

usage: python -m tests.tools.build_docs

Must run in the environment that holds antsibull-docs. Anything that its documentation schema refuses is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tools import results

BIN = Path(sys.executable).parent
DOCS = results.TOP / ".build" / "docs"


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    shutil.rmtree(DOCS, ignore_errors=True)
    pages = DOCS / "rst"
    pages.mkdir(parents=True)
    results.HOME.mkdir(parents=True, exist_ok=True)
    pages.chmod(0o755)  # antsibull-docs refuses a folder with any other mode
    write = ["antsibull-docs", "collection", "--use-current", "--fail-on-error", "--squash-hierarchy"]
    write += ["--dest-dir", str(pages), "bettercompute.bcd"]
    settings = ["extensions=sphinx_antsibull_ext", "html_theme=alabaster", "project=bettercompute.bcd"]
    # The pages refer to labels of Ansible's own documentation, which is not here.
    settings.append("suppress_warnings=ref.ref")
    render = ["sphinx-build", "-q", "-C", "-b", "html", *(word for pair in settings for word in ("-D", pair))]
    render += [str(pages), str(DOCS / "html")]
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    environment = dict(os.environ, PATH=path, HOME=str(results.HOME))  # antsibull writes a log there
    for command in (write, render):
        done = subprocess.run([str(BIN / command[0]), *command[1:]], env=environment, cwd=results.TOP, check=False)
        if done.returncode:
            return done.returncode
    print(f"written {(DOCS / 'html' / 'index.html').relative_to(results.TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
