"""Records of each kind, and objects of them that have a field more, which no response may send."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pydantic


class User(msgspec.Struct):
    name: str


class Account(User):
    password: str = "SECRET"


@dataclass
class DUser:
    name: str


@dataclass
class DAccount(DUser):
    password: str = "SECRET"


class PUser(pydantic.BaseModel):
    name: str


class PAccount(PUser):
    password: str = "SECRET"
