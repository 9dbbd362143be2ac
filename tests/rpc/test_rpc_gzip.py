"""Mounted services unpack gzip as connectrpc does, in linear time (`make connect-conformance`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rig import application

PYTHON = Path(__file__).parents[2] / ".tools/connect/environment/bin/python"


@pytest.mark.skipif(not PYTHON.exists(), reason="`make .tools/connect/ready` installs connectrpc")
def test_gzip_is_unpacked_as_the_library_does() -> None:
    done = subprocess.run(
        [PYTHON, application("rpc_gzip_script")], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "alike\n", done.stderr
