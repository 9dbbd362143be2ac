"""Several workers: forked, watched, replaced, stopped in order. Serves nothing, imports no application.

Read control.py first: one loop, ``Supervisor.run``, that waits in one place. slots.py has the workers' places
with their sockets; rollout.py replaces workers that serve; upgrade.py is USR2; health.py says which worker
has to go, and why. worker.py is one process as its parent sees it, and its first steps.

A slot is a place for one worker, with sockets of its own that outlive it: a worker that dies leaves its
queue of connections to the next one. Rules:

- TERM, INT: workers drain within the deadline; a second INT, or QUIT, stops them at once.
- HUP: configuration and code are read again; one slot after the other gets a new worker, and the old one
  drains when the new one is ready. One that does not get ready ends the restart, and the old ones go on.
- TTIN, TTOU: a worker more, a worker less. USR1: log files are opened anew. USR2: a new server takes over.
- A worker past its requests, lifetime or memory is replaced like that too. One whose loop hangs prints its
  Python stacks and is killed.
- A worker that ends without being told to is replaced, later and later if it keeps dying young.
- A worker that cannot start (exit codes 3 and 4) before any has been ready stops everything with that code.
- Workers do not outlive the supervisor: they hold the reading end of a pipe whose hang-up is a TERM.
- As PID 1 it reaps orphaned processes; with ``--sandbox`` it ends those that workers have forked.
"""

from __future__ import annotations

from citius.serving.supervisor.control import Supervisor

__all__ = ["Supervisor"]
