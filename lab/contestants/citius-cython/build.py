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
sys.path.insert(0, str(tools))
from Cython.Compiler.Main import compile  # noqa: E402

package = str(Path(citius.__file__).parents[1])
includes = [f"-I{path}" for path in (sysconfig.get_path("include"), citius.get_include())]
for name, compiler, suffix in (("handlers", "cc", ".c"), ("goroutines", "c++", ".cpp")):
    source, made = here / f"{name}.pyx", build / f"{name}{suffix}"
    result = compile(
        str(source), output_file=str(made), include_path=[package, str(here)], cplus=suffix == ".cpp"
    )
    if result.num_errors:
        sys.exit("Cython found errors")
    module = build / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run(
        [compiler, "-O3", "-fwrapv", "-shared", "-fPIC", *includes, str(made), "-o", str(module)],
        check=True,
    )
