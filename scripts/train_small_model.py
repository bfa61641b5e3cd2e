"""Train the built-in model: bags of characters, masked words, then entities.

Deterministic for one machine, thread count and precision: the seed, the texts and the step number
decide every sample. Resumable: run it again and it goes on from the last checkpoint of its folder.

    scripts/train_small_model.py             # what is shipped: eighty minutes on two cores
    scripts/train_small_model.py --quick     # a look: a sixth of it
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))


if TYPE_CHECKING:
    from small_model.corpus import Corpus
    from small_model.network import Network
    from tokenizers import Tokenizer

# Steps of the stages: sentences as bags of characters, masked words, entities and masked words.
QUICK, FULL = (600, 50, 1200), (600, 150, 7000)


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shared = ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=shared if shared.exists() else None)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "small_model")
    parser.add_argument("--out", type=Path, help="write the finished model into this folder")
    parser.add_argument("--quick", action="store_true", help=f"steps {QUICK} instead of {FULL}")
    parser.add_argument(
        "--steps", type=int, nargs=3, metavar=("BAGS", "MASKED", "JOINT"), help="of each stage"
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, help="of a masked step; the rest scales"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--float32", action="store_true", help="no bfloat16")
    parser.add_argument("--seed", type=int, default=20)
    return parser.parse_args()


def say(text: str) -> None:
    """A line with the time of day, at once."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def prepare(arguments: argparse.Namespace, n_steps: int) -> tuple[Corpus, Tokenizer, Network]:
    """Read the texts, build the tokenizer, train the bags: the network as it begins."""
    from small_model import bags, network, start, vocabulary
    from small_model import corpus as corpora
    from tokenizers import Tokenizer

    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    corpus = corpora.load_corpus(ROOT / "data", arguments.data)
    sizes = {name: sum(map(len, texts)) for name, texts in corpus.texts.items()}
    say(f"characters by source: {sizes}")
    pieces = vocabulary.build_pieces(text for texts in corpus.texts.values() for text in texts)
    vocabulary.write_tokenizer(work, pieces)
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    kept = work / f"start-{n_steps}.npy"
    if not kept.exists():
        lines = {line for texts in corpus.texts.values() for t in texts for line in t.split("\n")}
        encoded = tokenizer.encode_batch(sorted(lines), add_special_tokens=False)
        streams = [np.asarray(one.ids, np.int64) for one in encoded if one.ids]
        lexical = start.lexical_vectors(
            start.count_lines(streams, len(pieces)), len(streams), pieces
        )
        n_pairs = max(arguments.tokens // 4, 2)
        pairing = bags.Pairing(corpus, tokenizer)
        lexical = bags.train_bags(lexical, pairing, n_steps, n_pairs, arguments.seed, say)
        features = start.feature_vectors(streams, pieces)
        np.save(kept, np.concatenate([start.with_rest(lexical), features], axis=1))
    model = network.Network(network.small_config(len(pieces)), np.load(kept))
    return corpus, tokenizer, model.to(arguments.device)


def main() -> int:
    """Run the stages that are not yet done, then write the model."""
    arguments = read_arguments()
    import torch
    from small_model import export, joint, masking
    from small_model.stages import Run, Stage, run_stage

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    torch.use_deterministic_algorithms(mode=True)
    bag_steps, masked_steps, joint_steps = arguments.steps or (QUICK if arguments.quick else FULL)
    corpus, tokenizer, model = prepare(arguments, bag_steps)
    run = Run(arguments.work, arguments.seed, arguments.device, not arguments.float32)
    masked = masking.MaskedTask(corpus, tokenizer, arguments.device, arguments.tokens)
    seconds = run_stage(Stage("masked", masked_steps, 1e-3, masked.loss), model, run, say)
    run = replace(run, folder=arguments.work / f"joint-{bag_steps}-{masked_steps}-{joint_steps}")
    run.folder.mkdir(exist_ok=True)
    task = joint.JointTask(corpus, tokenizer, masked, arguments.device)
    stage = Stage("joint", joint_steps, 1e-3, task.loss, falls=True)
    seconds += run_stage(stage, model, run, say)
    say(f"{seconds:.0f} s of training in this process")
    if arguments.out:
        export.write_model(arguments.out, model, arguments.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
