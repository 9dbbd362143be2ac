"""The lab: asks questions of HTTP servers over the network and records the answers.

The order of a run is the order of the modules: ``plan`` → ``launch`` → ``drive`` → ``record``, and
from the records alone ``analyse`` → ``report``. ``workloads`` says what is asked, ``verify`` checks
the answers, ``contestants`` says who answers, ``environment`` on what machine.

Nothing here imports a contestant, and Citius is a contestant.
"""
