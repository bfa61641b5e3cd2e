"""scikit-learn: texts to vectors as a step of a pipeline.

Guarantees: nothing is learned, so a transformer gives the same vectors however it was fitted.
``fit`` opens the cache and chooses the space: a wrong model is found before the first text.
Vectors are read from the cache; a text that it lacks is encoded in a worker process. This process
imports no torch.

::

    make_pipeline(EmbeddingTransformer("c.h5"), LogisticRegression()).fit(texts, labels)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from featpipe.errors import MissingExtra
from featpipe.on_demand.text_encoder import TextEncoder

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtra("this needs scikit-learn", hint="pip install 'featpipe[sklearn]'") from error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray
    from sklearn.utils import Tags


class EmbeddingTransformer(TransformerMixin, BaseEstimator):
    """Texts (n,) to vectors (n, dim) float32 of one space of a cache.

    Args:
        cache: the file.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.

    Attributes:
        encoder_: source of the vectors.
        space_: name of the space.

    """

    def __init__(
        self,
        cache: str | Path = "cache.h5",
        model: str | Path | None = None,
        device: str = "cpu",
    ) -> None:
        self.cache = cache
        self.model = model
        self.device = device

    def fit(self, X: object = None, y: object = None) -> Self:
        """Open the cache; the texts are ignored.

        Raises:
            UnknownSpace: the cache holds no vectors by this very model.

        """
        self.close()
        self.encoder_ = TextEncoder(self.cache, self.model, device=self.device)
        self.space_ = self.encoder_.space
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Vectors in the order of the texts.

        Raises:
            ValueError: not a list, array or series of strings.
            NotFittedError: before ``fit``.

        """
        check_is_fitted(self, "encoder_")
        if isinstance(X, str):
            raise ValueError("texts are expected, not one text")
        texts = list(np.asarray(X, object).ravel() if hasattr(X, "__array__") else X)
        strange = next((text for text in texts if not isinstance(text, str)), None)
        if strange is not None:
            raise ValueError(f"texts are strings, not {type(strange).__name__}")
        return self.encoder_.encode([str(text) for text in texts])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """``zh-small0``, ``zh-small1`` ...: the space's name and the place in the vector."""
        check_is_fitted(self, "encoder_")
        name = self.space_.partition("@")[0]
        return np.asarray([f"{name}{at}" for at in range(self.encoder_.dim)], object)

    def close(self) -> None:
        """Stop the worker and close the cache, if fitted; ``fit`` opens them again."""
        encoder = self.__dict__.pop("encoder_", None)
        if encoder is not None:
            encoder.close()

    def __sklearn_tags__(self) -> Tags:
        """One-dimensional strings; must be fitted before ``transform``."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = True
        return tags
