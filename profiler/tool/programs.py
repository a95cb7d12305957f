# SPDX-License-Identifier: MIT
"""The programs that stand beside the command. A path that a process sent is never run."""
from __future__ import annotations

import contextlib
import os
import pkgutil
import subprocess
import sys

from profiler.tool.say import NO, Refusal


def find(name: str) -> str | None:
    """That which TIDEPOOL_STAGER names, else that beside this program, or where it was installed with it."""
    named = os.environ.get("TIDEPOOL_STAGER", "") if name == "tidepool-stage" else ""
    own = os.path.dirname(os.path.realpath(sys.argv[0]))
    libexec = ""
    with contextlib.suppress(OSError):  # in the source there is none
        libexec = (pkgutil.get_data(__name__, "libexec") or b"").decode()
    for path in (named, f"{own}/{name}", f"{own}/{libexec}/{name}"):
        if path.startswith("/") and os.access(path, os.X_OK):
            return path
    return None


def need(name: str) -> str:
    path = find(name)
    if path is None:
        raise Refusal(NO, f"no program {name} beside this one")
    return path


def stage(spec: str, *words: str, captures: bool = False) -> str | None:
    """What tidepool-stage explains of the spec, on the standard output unless it is captured: then what it complains of is
    dropped. None: it failed."""
    sys.stdout.flush()
    done = subprocess.run([need("tidepool-stage"), "--explain", "-", *words], input=spec.encode("utf-8", "replace"), check=False,
                          stdout=subprocess.PIPE if captures else None, stderr=subprocess.DEVNULL if captures else None)
    return (done.stdout or b"").decode("utf-8", "replace") if done.returncode == 0 else None


def profile(*words: str, input: str = "", captures: bool = False) -> bytes:
    """What tidepool-profile says, if that is captured; what it complains of is a Refusal."""
    done = subprocess.run([need("tidepool-profile"), *words], input=input.encode("utf-8", "replace"), check=False,
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE if captures else None)
    if done.returncode != 0:
        raise Refusal(max(done.returncode, NO), done.stderr.decode("utf-8", "replace").strip() or "tidepool-profile has failed")
    return done.stdout or b""
