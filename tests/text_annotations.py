"""Classes whose annotations are texts, with names that their subclasses have other things by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Marked

import attrs
import msgspec
from citius import Depends, Unauthorized


def guard() -> str:
    raise Unauthorized("not for you")


@dataclass
class Data:
    user: Marked[str, Depends(guard)]


@attrs.define
class Attributes:
    _user: Marked[str, Depends(guard)]


class Struct(msgspec.Struct):
    user: Marked[str, Depends(guard)]
