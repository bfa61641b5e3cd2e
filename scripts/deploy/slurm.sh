#!/usr/bin/env bash
# A folder cache by Slurm: run on a login node, with a shared file system and one installation.
#
#   DOCS=/data/contracts CACHE=/data/corpus.fp bash slurm.sh
#
# Jobs that were killed, preempted or timed out are done by running the script again: what is done
# is not done again.
set -euo pipefail

: "${DOCS:?folder of the documents}" "${CACHE:?folder of the cache}"
SHARDS=${SHARDS:-1024} PARTS=${PARTS:-auto} READERS=${READERS:-100} CARDS=${CARDS:-64}
# Slurm's limit of MaxArraySize needs no care: a task takes every N-th job.

if [ -z "${AGAIN:-}" ]; then
  featpipe shard plan "$CACHE" "$DOCS" --shards "$SHARDS" --parts "$PARTS" --device cuda:0
fi

prepare=$(sbatch --parsable --array="0-$((READERS - 1))" --cpus-per-task=8 --mem=16G \
  --requeue --signal=TERM@60 <<SBATCH
#!/bin/bash
exec featpipe shard prepare "$CACHE" --job "\$SLURM_ARRAY_TASK_ID/$READERS" \
  --cpus "\$SLURM_CPUS_PER_TASK" --memory 12000 --scratch "\${TMPDIR:-/tmp}"
SBATCH
)

# afterany: documents that were quarantined end a task with exit code 1.
sbatch --array="0-$((CARDS - 1))" --dependency="afterany:$prepare" --gpus-per-task=1 \
  --cpus-per-task=8 --requeue --signal=TERM@60 <<SBATCH
#!/bin/bash
exec featpipe shard encode "$CACHE" --job "\$SLURM_ARRAY_TASK_ID/$CARDS" \
  --device cuda:0 --cpus "\$SLURM_CPUS_PER_TASK" --scratch "\${TMPDIR:-/tmp}"
SBATCH
