"""Query prompts: the text that a retrieval model expects before a question. Imports no torch.

Retrieval models are trained with one prompt before questions and another, often none, before
passages. The prompt of passages is part of a space's fingerprint. That of queries is not: a query's
vector is compared with the space and never stored in it.

The prompt of queries is, in this order: the one that was given; the model's own, from
``config_sentence_transformers.json``; that of a well-known model, recognised by its name together
with its configuration; else that of the passages. A configuration alone does not tell: bge-large-zh
and gte-large-zh have the same one, and of the two only bge has a prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.encoders.checkpoint import Checkpoint

#: What models call the prompt of a query in their own files, the likeliest first.
_QUERY_NAMES = ("query", "retrieval.query", "search_query", "s2p_query")
_PASSAGE_NAMES = ("passage", "document", "retrieval.passage", "search_document")


@dataclass(frozen=True, slots=True)
class QueryPrompt:
    """A text put before every query, and where it is from."""

    text: str
    source: str

    def __str__(self) -> str:
        shown = repr(self.text) if self.text else "no prompt"
        return f"{shown} ({self.source})"


@dataclass(frozen=True, slots=True)
class WellKnown:
    """The prompts of a family of models, as their authors document them.

    Attributes:
        family: its name.
        pattern: of a model's name in lower case, the whole of it.
        vocabularies: ``model_type`` and ``vocab_size`` of its members; None for any size.
        query, passage: the prompts; empty for none.
    """

    family: str
    pattern: str
    vocabularies: tuple[tuple[str, int | None], ...]
    query: str = ""
    passage: str = ""

    def describes(self, name: str, checkpoint: Checkpoint) -> bool:
        """Whether a model of this name and configuration belongs to the family."""
        if not re.fullmatch(self.pattern, name):
            return False
        size = checkpoint.config.get("vocab_size")
        return any(
            checkpoint.architecture == kind and vocabulary in {None, size}
            for kind, vocabulary in self.vocabularies
        )


#: In English and Chinese BERT's vocabularies, and XLM-RoBERTa's.
_ENGLISH, _CHINESE = ("bert", 30522), ("bert", 21128)
_XLM = ("xlm-roberta", 250002)
_QWEN_QUERY = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

#: Sources: the cards of the models. Names are without their owners.
WELL_KNOWN = (
    WellKnown("bge zh", r"bge-(small|base|large)-zh(-v1\.5)?", (_CHINESE,),
              "为这个句子生成表示以用于检索相关文章："),
    WellKnown("bge en", r"bge-(small|base|large)-en(-v1\.5)?", (_ENGLISH,),
              "Represent this sentence for searching relevant passages: "),
    WellKnown("bge-m3", r"bge-m3(-.+)?", (_XLM,)),
    WellKnown("e5", r"e5-(small|base|large)(-v2)?", (_ENGLISH,), "query: ", "passage: "),
    WellKnown("multilingual e5", r"multilingual-e5-(small|base|large)",
              (_XLM, ("bert", 250037)), "query: ", "passage: "),
    WellKnown("multilingual e5 instruct", r"multilingual-e5-large-instruct", (_XLM,),
              f"{_QWEN_QUERY} "),
    WellKnown("gte zh", r"gte-(small|base|large)-zh", (_CHINESE,)),
    WellKnown("gte", r"gte-(small|base|large|base-en-v1\.5|large-en-v1\.5|multilingual-base)",
              (_ENGLISH, ("new", None))),
    WellKnown("jina v2", r"jina-embeddings-v2-(small|base)-[a-z]+", (("bert", None),)),
    WellKnown("jina v3", r"jina-embeddings-v3(-.+)?", (("xlm-roberta", None),),
              "Represent the query for retrieving evidence documents: ",
              "Represent the document for retrieval: "),
    WellKnown("Qwen3", r"qwen3-embedding-[\d.]+b", (("qwen3", None),), _QWEN_QUERY),
    WellKnown("nomic", r"nomic-embed-text-v1(\.5)?", (("nomic_bert", None),),
              "search_query: ", "search_document: "),
    WellKnown("mxbai", r"mxbai-embed-large-v1", (_ENGLISH,),
              "Represent this sentence for searching relevant passages: "),
    WellKnown("m3e", r"m3e-(small|base|large)", (_CHINESE,)),
    WellKnown("text2vec", r"text2vec-(base|large)-chinese(-.+)?", (_CHINESE,)),
)  # fmt: skip


def find_query_prompt(
    checkpoint: Checkpoint, passage_prompt: str = "", given: str | None = None
) -> QueryPrompt:
    """The prompt of queries against a space of this model.

    Args:
        checkpoint: the model that filled the space.
        passage_prompt: that of the space.
        given: what the caller asks for, also ``""``; None: the model's own.
    """
    if given is not None:
        return QueryPrompt(given, "as given")
    own = _first_of(checkpoint, _QUERY_NAMES)
    if own is not None:
        return own
    known = find_well_known(checkpoint)
    if known is not None:
        return QueryPrompt(known.query, f"as documented for {known.family}")
    return QueryPrompt(passage_prompt, "as passages: the model names none for queries")


def find_passage_prompt(checkpoint: Checkpoint) -> QueryPrompt | None:
    """The prompt that the model expects before passages; None where it is not known."""
    own = _first_of(checkpoint, _PASSAGE_NAMES)
    if own is not None:
        return own
    known = find_well_known(checkpoint)
    if known is None:
        return None
    return QueryPrompt(known.passage, f"as documented for {known.family}")


def find_well_known(checkpoint: Checkpoint) -> WellKnown | None:
    """The family that the checkpoint belongs to, by name and configuration."""
    name = model_name(checkpoint).lower()
    return next((known for known in WELL_KNOWN if known.describes(name, checkpoint)), None)


def model_name(checkpoint: Checkpoint) -> str:
    """The model's name without its owner: of its folder, in the hub cache of its repository."""
    folder = checkpoint.folder
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.rpartition("--")[2]
    return folder.name


def _first_of(checkpoint: Checkpoint, names: tuple[str, ...]) -> QueryPrompt | None:
    """The first of the named prompts that the model's files state.

    An empty one states nothing: sentence-transformers writes it into every model that it saves.
    """
    stated = checkpoint.recipe.prompts
    name = next((name for name in names if stated.get(name)), None)
    return None if name is None else QueryPrompt(stated[name], f"the model's prompt {name!r}")
