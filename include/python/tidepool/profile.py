# SPDX-License-Identifier: MIT
"""What each site was seen to acquire, kept in a file from one run to the next."""
from __future__ import annotations

import os

from . import _core

__all__ = ["load", "merge", "save"]


def save(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """Writes the profiles of all scopes and tunables to a file, which a reader sees whole or not at all."""
    _core.profile_save(os.fsencode(path))


def load(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """Reads profiles from a file, in place of those that were loaded before."""
    _core.profile_load(os.fsencode(path))


def merge(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """Reads profiles from a file, besides those that were loaded before."""
    _core.profile_merge(os.fsencode(path))
