"""Train the built-in model: bags of characters, masked words, entities, meanings, transitions.

Deterministic for one machine, thread count and precision: the seed, the texts and the step number
decide every sample. Resumable: run it again and it goes on from the last checkpoint of its folder.

    scripts/train_small_model.py             # what is shipped: 2 h 40 min on two cores
    scripts/train_small_model.py --quick     # a look: a fifth of it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))


if TYPE_CHECKING:
    from small_model.corpus import Corpus
    from small_model.meanings import Meanings
    from small_model.network import Network
    from tokenizers import Tokenizer

# Steps of the stages: sentences as bags of characters, masked words, entities and masked words,
# beside these meanings of words, and again, with more weight on entities; transitions of labels.
QUICK, FULL = (600, 50, 1200, 600, 100, 60), (600, 150, 7000, 3600, 2500, 300)
#: How loud the meaning of words is beside the bag of characters, in what is written.
LOUDNESS = 1.2


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    shared = ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=shared if shared.exists() else None)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "small_model")
    parser.add_argument("--out", type=Path, help="write the finished model into this folder")
    parser.add_argument("--quick", action="store_true", help=f"steps {QUICK} instead of {FULL}")
    parser.add_argument(
        "--steps",
        type=int,
        nargs=6,
        metavar=("BAGS", "MASKED", "JOINT", "MEANINGS", "SETTLING", "TRANSITIONS"),
        help="of each stage",
    )
    parser.add_argument(
        "--tokens", type=int, default=2048, help="of a masked step; the rest scales"
    )
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", help="by default a graphics card, if there is one")
    parser.add_argument("--float32", action="store_true", help="no bfloat16")
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"{arguments.data} is no folder with data")
    return arguments


def say(text: str) -> None:
    """A line with the time of day, at once."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


def find_device() -> str:
    """A graphics card, if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def begin(threads: int, seed: int) -> None:
    """Make what follows the same each time."""
    # On a card: https://docs.nvidia.com/cuda/cublas/#results-reproducibility
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode=True)


def digest(corpus: Corpus) -> str:
    """Of all that is learnt from."""
    content = repr(corpus).encode()
    for path in sorted((ROOT / "scripts" / "small_model").glob("*.txt")):
        content += path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def claim(work: Path, samples: dict[str, int | str]) -> None:
    """Say in the folder of checkpoints what they are learnt from.

    Raises:
        SystemExit: it holds checkpoints of other samples, which this run must not go on from.

    """
    kept = work / "samples.json"
    told = json.loads(kept.read_text("utf-8")) if kept.exists() else samples
    other = ", ".join(name for name, value in samples.items() if told.get(name) != value)
    if other:
        raise SystemExit(f"{work} holds checkpoints of another {other}: give a new --work")
    kept.write_text(json.dumps(samples), "utf-8")


def prepare(arguments: argparse.Namespace, n_steps: int) -> tuple[Corpus, Tokenizer, Network]:
    """Read the texts, build the tokenizer, train the bags: the network as it begins."""
    from small_model import bags, network, start, vocabulary
    from small_model import corpus as corpora
    from small_model.contrast import Lesson, learn_pairs
    from tokenizers import Tokenizer

    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    corpus = corpora.load_corpus(ROOT / "data", arguments.data)
    claim(work, {"seed": arguments.seed, "tokens": arguments.tokens, "texts": digest(corpus)})
    sizes = {name: sum(map(len, texts)) for name, texts in corpus.texts.items()}
    say(f"characters by source: {sizes}")
    if sizes.keys() == {"own"}:
        say("no other data: this model will know our own documents alone")
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
        lesson = Lesson(n_steps, max(arguments.tokens // 4, 2), arguments.seed)
        draw_step = bags.Pairing(corpus, tokenizer).draw_step
        lexical = learn_pairs(lexical, draw_step, bags.PLAN, lesson, say)
        features = start.feature_vectors(streams, pieces)
        np.save(kept, np.concatenate([start.with_rest(lexical), features], axis=1))
    model = network.Network(network.small_config(len(pieces)), np.load(kept))
    return corpus, tokenizer, model.to(arguments.device)


def make_meanings(
    arguments: argparse.Namespace,
    n_steps: int,
    corpus: Corpus,
    tokenizer: Tokenizer,
    bag: np.ndarray,
) -> Meanings:
    """Word vectors in the scale of the bags that `bag`, the embeddings of the pieces, gives."""
    from small_model.contrast import Lesson
    from small_model.meanings import Meanings
    from small_model.shape import LEXICAL

    def lexical(texts: list[str]) -> np.ndarray:
        tokenizer.no_truncation()
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        return np.stack([bag[one.ids, :LEXICAL].sum(axis=0) for one in encoded])

    path = arguments.work / f"meanings-{n_steps}.npz"
    if not path.exists():
        lesson = Lesson(2 * n_steps, max(arguments.tokens // 4, 2), arguments.seed)
        Meanings.make(corpus, lexical, lesson, say).save(path)
    return Meanings.load(path)


def learn_transitions(folder: Path, n_steps: int, corpus: Corpus, seed: int) -> None:
    """Add to the written model how its labels are chosen together; its other tensors stay."""
    from small_model import export, transitions
    from small_model.labels import Labeller

    n_samples = min(transitions.N_SAMPLES, n_steps * transitions.LOT)
    lots = transitions.score_samples(folder, Labeller(corpus), n_samples, seed)
    crf = transitions.learn_crf(lots, n_steps, seed, say)
    export.add_tensors(folder / "model.safetensors", crf.named())


def main() -> int:
    """Run the stages that are not yet done, then write the model and teach it transitions."""
    arguments = read_arguments()
    from small_model import export, joint, masking
    from small_model.stages import Run, Stage, run_stage

    arguments.device = arguments.device or find_device()
    begin(arguments.threads, arguments.seed)
    steps = arguments.steps or list(QUICK if arguments.quick else FULL)
    corpus, tokenizer, model = prepare(arguments, steps[0])
    masked = masking.MaskedTask(corpus, tokenizer, arguments.device, arguments.tokens)

    def train(stage: Stage, *plan: int) -> float:
        """What a stage becomes depends on those before it: each plan has a folder of its own."""
        folder = arguments.work / "-".join([stage.name, *map(str, plan)])
        folder.mkdir(exist_ok=True)
        run = Run(folder, arguments.seed, arguments.device, not arguments.float32)
        return run_stage(stage, model, run, say)

    def train_jointly(name: str, plan: list[int], rate: float, meanings: Meanings | None) -> float:
        task = joint.JointTask(
            corpus, tokenizer, masked, arguments.device, meanings, settles=name == "settling"
        )
        return train(Stage(name, plan[-1], rate, task.loss, falls=True), *plan)

    seconds = train(Stage("masked", steps[1], 1e-3, masked.loss), steps[0])
    seconds += train_jointly("joint", steps[:3], 1e-3, None)
    bag = model.masked.bert.embeddings.word_embeddings.weight.detach().cpu().numpy()
    meanings = make_meanings(arguments, steps[0], corpus, tokenizer, bag)
    model.say_meanings(1.0)
    seconds += train_jointly("meaning", steps[:4], 1e-3, meanings)
    seconds += train_jointly("settling", steps[:5], 6e-4, meanings)
    model.say_meanings(LOUDNESS)
    say(f"{seconds:.0f} s of training in this process")
    written = arguments.work / "model"
    export.write_model(written, model, arguments.work)
    learn_transitions(written, steps[5], corpus, arguments.seed)
    if arguments.out:
        shutil.copytree(written, arguments.out, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
