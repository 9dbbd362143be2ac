"""The lab's errors; each message says what was expected, what came, and what to do.

LabError
├── DefinitionError   a definition of a workload, contestant or experiment is wrong, or missing
├── BuildError        a contestant does not build
├── LaunchError       a contestant does not start, or died
├── LoadError         the load generator is missing or failed
├── ClusterGone       the scheduler, or a machine that generates load, is gone: no measurement is left to try
└── RecordError       the result folder cannot be written
"""

from __future__ import annotations


class LabError(Exception):
    """Anything the person at the terminal can do something about."""


class DefinitionError(LabError):
    """A definition is wrong (TOML, a key, a value, a name), or there is none of that name."""


class BuildError(LabError):
    """A contestant does not build; the message ends with the log's last lines."""


class LaunchError(LabError):
    """A contestant did not start listening, or ended while it was needed."""


class LoadError(LabError):
    """The load generator is missing, failed, or wrote what is not a record."""


class ClusterGone(LabError):
    """The scheduler or a worker of a Dask cluster is gone; what was recorded before stands."""


class RecordError(LabError):
    """A record could not be written; those before it stand."""
