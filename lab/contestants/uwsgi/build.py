"""build.py DIRECTORY: install uWSGI into the running environment, linked to the library of its Python.

uWSGI's build looks for that library where the interpreter was configured to have it. One that was made
on another machine and unpacked here has it elsewhere: a link in DIRECTORY leads to what the running
interpreter has loaded. Of an interpreter without a shared library nothing is linked.
"""

import os
import subprocess
import sys
from pathlib import Path

here, folder = Path(__file__).parent, Path(sys.argv[1]) / "python-library"
folder.mkdir(parents=True, exist_ok=True)
loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libpython" in line}
for library in map(Path, loaded):
    for name in (library.name, library.name.partition(".so")[0] + ".so"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(library)
flags = f"-L{folder} -Wl,-rpath,{folder}" if loaded else ""
# A wheel that was built with other flags would be taken from the cache.
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", str(here / "uwsgi.txt")]
subprocess.run(pip, check=True, env=os.environ | {"LDFLAGS": flags})
