#!/usr/bin/env bash
# A Slurm cluster of one node, in a folder of its own: tests/slurm/start.sh FOLDER
#
# It needs Debian's slurm-wlm and munge, but no systemd, no cgroups and no root. It prints nothing.
# The daemons' messages are in FOLDER/*.log. Clients need SLURM_CONF=FOLDER/slurm.conf.
# tests/slurm/stop.sh FOLDER ends it. Its two GPUs are fake: devices that every Linux has.
set -euo pipefail

mkdir -p "$1"/{state,spool,bin}
folder=$(realpath "$1")
export SLURM_CONF=$folder/slurm.conf
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }

# There is no accounting, which needs a data base, and no limit of memory, which needs cgroups.
cat >"$SLURM_CONF" <<CONF
ClusterName=tests
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=2
MinJobAge=3600
GresTypes=gpu
NodeName=node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo) Gres=gpu:2
PartitionName=tests Nodes=node Default=YES State=UP
CONF
echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
printf 'Name=gpu File=%s\n' /dev/null /dev/zero >"$folder/gres.conf"

# Snakemake's plugin hides SLURM_CONF from srun, which on a cluster is not needed.
cat >"$folder/bin/srun" <<SRUN
#!/bin/sh
SLURM_CONF=$SLURM_CONF exec $(command -v srun) "\$@"
SRUN
chmod +x "$folder/bin/srun"

(umask 077 && head --bytes 128 /dev/urandom >"$folder/munge.key")
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
slurmctld
slurmd -N node

for _ in {1..60}; do
    [ "$(sinfo --noheader --format=%T 2>/dev/null)" != idle ] || exit 0
    sleep 0.5
done
echo "the node is not idle after 30 s; see $folder/slurmctld.log and slurmd.log" >&2
exit 1
