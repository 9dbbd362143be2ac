"""A child of ``citius dev`` that serves in the place of one that has ended: it tells clients why (failed.py).

In, on standard input, from the reloader and by pickle: the configuration with which it was started, and the
reason. Tests: ``tests/cli/test_start_failures.py``.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from typing import NoReturn

from citius.errors import StartupError
from citius.serving.failed import failed_app
from citius.serving.server import serve


def main() -> NoReturn:
    """Serve until the reloader ends this process."""
    config, reason = pickle.load(sys.stdin.buffer)
    alone = replace(
        config, reload=False, workers=1, supervisor=False, loop="auto", reactor_threads=1, management=None,
        pidfile=None, sandbox=False, log_config=None, log_level="error",
    )  # fmt: skip
    sys.exit(serve(failed_app(StartupError(reason)), alone))


if __name__ == "__main__":
    main()
