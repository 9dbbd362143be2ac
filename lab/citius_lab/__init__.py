"""The lab: asks questions of HTTP servers over the network and records the answers.

``definitions`` reads the files that say what there is. The order of a run is the order of the
modules: ``experiments`` (of ``protocols``, ``articles`` and
``workloads``) → ``plan`` → ``run``, ``launch``, ``drive``, ``usage`` → ``record``, and from the
records alone ``analyse`` (``statistics``, ``verdict``, ``compare``) → ``report``. ``verify`` checks
the answers, ``contestants`` says who answers, ``environment`` on what machine, ``history`` what a
run knows of itself.

Nothing here imports a contestant, and Citius is a contestant.
"""
