"""Standard input, output and error: each of their numbers is open, so that no socket or log file gets one.

What is written to a stream would go into such a file, and libuv does not close descriptors below 3. An
application may close them too, at its import or in a start-up hook. Tests:
``tests/cli/test_standard_streams.py``.
"""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Put /dev/null in the place of standard streams that are closed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            fd = os.open(os.devnull, os.O_RDWR)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
