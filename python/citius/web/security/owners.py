"""Who owns what outlives a request: the value of an ``owner=`` dependency in, a text that identifies it out.

Runs and uploads are found again by it, so it is the same for every request of one caller. Tests:
``tests/runs/test_declarations.py``.
"""

from __future__ import annotations

from uuid import UUID


def owner_text(owner: object, where: str) -> str:
    """The text of an owner: a text, a number, a UUID, or the ``id`` of a ``Principal``.

    Raises:
        TypeError: It is something else, whose text may be another one for each request.
    """
    from citius.web.security.schemes import Principal

    if isinstance(owner, Principal):
        return owner.id
    if isinstance(owner, (str, int, UUID)):
        return str(owner)
    raise TypeError(
        f"the owner of {where} is a {type(owner).__name__}; return a text, a number, a UUID or a Principal"
    )
