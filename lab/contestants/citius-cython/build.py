"""build.py DIRECTORY: install Cython into DIRECTORY/tools and build the handlers into DIRECTORY."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import citius

here, build = Path(__file__).parent, Path(sys.argv[1])
tools = build / "tools"
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(tools)]
subprocess.run([*pip, "-r", str(here / "requirements.txt")], check=True)
source, made = here / "handlers.pyx", build / "handlers.c"
sys.path.insert(0, str(tools))
from Cython.Compiler.Main import compile  # noqa: E402

result = compile(str(source), output_file=str(made), include_path=[str(Path(citius.__file__).parents[1])])
if result.num_errors:
    sys.exit("Cython found errors")
module = build / ("handlers" + sysconfig.get_config_var("EXT_SUFFIX"))
includes = [sysconfig.get_path("include"), citius.get_include()]
subprocess.run(
    ["cc", "-O3", "-fwrapv", "-shared", "-fPIC", *(f"-I{path}" for path in includes), str(made), "-o", str(module)],
    check=True,
)
