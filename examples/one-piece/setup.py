"""python setup.py build_ext --inplace"""

import citius
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    name="classifier",
    ext_modules=cythonize(
        [
            Extension(
                "classifier",
                ["classifier.pyx"],
                language="c++",
                extra_compile_args=["-O3"],
                include_dirs=[citius.get_include()],
            )
        ]
    ),
)
