#!/usr/bin/env bash
# The smoke pipeline of all papers in three ways: tests/three_ways.sh FOLDER
#
# The ways are plain `--cores 2`, `--sdm conda` from the lean launcher with a fake conda, and a real
# Slurm with one node. Each runs the committed files in a clean clone below FOLDER. The exit status is
# 0 if every csv of the second and third has the bytes of the first.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
mkdir -p "$1"
folder=$(realpath "$1")
bin=$root/.venv/bin
scale=(--config scale=smoke)
export JAX_COMPILATION_CACHE_DIR=$folder/jax PYTHONUNBUFFERED=1

enter() {
    echo "$1: $folder/$1.log"
    cd "$folder/$1"
    exec >"$folder/$1.log" 2>&1
}

plain() (
    enter plain
    time "$bin/snakemake" --cores 2 "${scale[@]}"
)

conda() (
    enter conda
    export PATH=$root/tests/conda/bin:$bin:$PATH
    conda=$(type -P conda)
    "$conda" env create --quiet --no-default-packages --file envs/launcher.yaml --prefix "$folder/launcher"
    time "$folder/launcher/bin/python" -m snakemake --sdm conda --cores 2 "${scale[@]}"
)

slurm() (
    enter slurm
    "$bin/python" -m venv "$folder/cluster"
    cluster=$folder/cluster/bin/python
    site=$("$cluster" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/ours.pth"
    "$bin/pip" --quiet --python "$cluster" install --require-hashes --requirement profiles/slurm/requirements.txt
    "$root/tests/slurm/start.sh" "$folder/node"
    trap '"$root/tests/slurm/stop.sh" "$folder/node"' EXIT
    export SLURM_CONF=$folder/node/slurm.conf PATH=$folder/node/bin:$PATH
    time "$cluster" -m snakemake "${scale[@]}" --workflow-profile profiles/slurm --latency-wait 5 \
        --slurm-status-command squeue --slurm-init-seconds-before-status-checks 2
)

# All clones are made at once, so that they have the same commit.
for door in plain conda slurm; do
    git clone --quiet "$root" "$folder/$door"
done
plain
conda
slurm
cd "$folder/plain/figures"
find . -name '*.csv' -print0 | sort -z | xargs -0 sha256sum >"$folder/sums"
for door in conda slurm; do
    cd "$folder/$door/figures"
    sha256sum --quiet --check "$folder/sums"
    [ "$(find . -name '*.csv' | wc -l)" = "$(wc -l <"$folder/sums")" ]
done
echo "$(wc -l <"$folder/sums") csv files, the same bytes through all three"
