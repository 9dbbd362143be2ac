"""python setup.py build_ext --inplace, or pip install . with what pyproject.toml asks for."""

import citius
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    name="handlers",
    ext_modules=cythonize(
        [Extension("handlers", ["handlers.pyx"], include_dirs=[citius.get_include()])]
    ),
)
