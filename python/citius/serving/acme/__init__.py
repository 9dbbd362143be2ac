"""``--acme``: certificates that an authority issues by ACME (RFC 8555), fetched and renewed while serving.

store.py has the files: keys, certificates, answers to challenges. The protocol is that of certbot's package
`acme` (the extra ``citius[acme]``), in a process of its own (agent.py, issuing.py), which the supervisor
starts when something is due (``serving/supervisor/certificates.py``) and which ends when it is done: neither
the supervisor nor a worker imports it. Workers notice new certificates by themselves, as they notice changed
files of ``--ssl-certfile``. Any of them answers an authority's connections, from the files.

Tests: ``tests/acme/``, against Pebble.
"""
