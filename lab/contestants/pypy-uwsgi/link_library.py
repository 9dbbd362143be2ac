"""Links the shared library of the running PyPy to the given path, for uWSGI to load.

Debian puts it into a directory of the architecture under a name with the version; PyPy's own
archives keep it beside the interpreter.
"""

import os
import sys
import sysconfig
from pathlib import Path

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
FOLDERS = [
    Path(os.path.realpath(sys.executable)).parent,
    Path("/usr/lib") / (sysconfig.get_config_var("MULTIARCH") or ""),
    Path("/usr/lib") / f"{os.uname().machine}-linux-gnu",
    Path(sys.base_prefix) / "bin",
    Path(sys.base_prefix) / "lib",
    Path("/usr/lib"),
]

target = Path(sys.argv[1])
found = [
    folder / name
    for folder in FOLDERS
    for name in (f"libpypy{VERSION}-c.so", "libpypy3-c.so")
    if (folder / name).is_file()
]
if not found:
    folders = ", ".join(map(str, FOLDERS))
    sys.exit(f"PyPy {VERSION} is here without its shared library; looked in {folders}")
target.unlink(missing_ok=True)
target.symlink_to(found[0])
