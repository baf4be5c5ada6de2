#!/usr/bin/env bash
# End the daemons that tests/slurm/start.sh FOLDER started.
for name in slurmd slurmctld munged; do
    kill "$(cat "$1/$name.pid")" 2>/dev/null || true
done
