#!/bin/sh
# A nightly measurement: nightly.sh EXPERIMENT RUNS
# Ends with 6 where a bound is broken tonight, or the newest runs are worse than those before.
# STARTS: starts of the servers (their differences are part of the noise). BOUND: what must not be.
set -eu
pgdyno run "$1" --runs "$2" --restarts "${STARTS:-5}" --fail-if "${BOUND:-p99 > 50ms}" --quiet
pgdyno history "$2" --fail-if worse
