# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Chromium that the page's tests drive: a distribution's own, since nothing may be downloaded past its packages.

usage: python -m tests.browser.chromium    installs it where it is missing, as root on a Debian
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium", "fonts-dejavu-core")  # and a font that has the page's marks


def found() -> str:
    """Its path; "" where this machine has none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


def missing() -> str:
    """What this machine lacks, as a sentence; "" where a Chromium is there, or this process may install it."""
    if found() or (os.geteuid() == 0 and shutil.which("apt-get")):
        return ""
    return "the browser's tests need Chromium: install it, or run this as root where there is apt-get"


def arguments() -> list[str]:
    """Chromium starts as root only without its sandbox; the pages are our own, and reach nothing."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def main(argv: list[str]) -> int:
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    lack = missing()
    if found() or lack:
        print(found() or lack, file=sys.stderr)
        return 1 if lack else 0
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for words in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
        command = ["apt-get", "-q", *words]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        if done.returncode:
            print(f"`{' '.join(command)}` exited {done.returncode}: install Chromium by hand", file=sys.stderr)
            return 1
    return 0 if found() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
