#!/bin/sh
# Compiles server.c to $1/server. Debian: libh2o-evloop-dev, libssl-dev, pkg-config.
set -eu
mkdir -p "$1"
exec cc -O2 -o "$1/server" server.c $(pkg-config --cflags --libs libh2o-evloop openssl)
