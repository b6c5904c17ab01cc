"""ServedModel: an exported SavedModel that scores rows given as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from forebay.errors import UsageError
from forebay.mixture.serving.raw_rows import Row, raw_inputs
from forebay.mixture.serving.served_features import FEATURES, SIGNATURE, ServedFeatures
from forebay.mixture.tensorflow_start import start_tensorflow

__all__ = ["ServedModel"]

BATCH_ROWS = 4_096


class ServedModel:
    """A SavedModel folder with its features.json."""

    def __init__(self, directory: Path) -> None:
        """Find the model in `directory`, or in `saved_model` below it; load nothing yet.

        Raises:
            UsageError: when there is none.
        """
        places = [directory, directory / "saved_model"]
        found = next((place for place in places if (place / FEATURES).is_file()), None)
        if found is None:
            raise UsageError(f"{directory} holds no exported model ({FEATURES} is missing)")
        try:
            self.features = ServedFeatures.model_validate_json((found / FEATURES).read_text())
        except ValidationError as error:
            raise UsageError(f"{found / FEATURES} cannot be read: {error}") from error
        self._directory = found

    def score(self, rows: Sequence[Row], threads: int = 1) -> list[dict[str, float]]:
        """The model's outputs for each row: `score`, and `memory` for a mixture.

        Raises:
            UsageError: for a row that does not hold exactly the model's columns.
            MissingExtraError: when TensorFlow is not installed.
        """
        batches = [
            raw_inputs(self.features, rows[first : first + BATCH_ROWS])
            for first in range(0, len(rows), BATCH_ROWS)
        ]
        start_tensorflow(threads)
        import tensorflow as tf

        loaded = tf.saved_model.load(str(self._directory))
        serve = loaded.signatures[SIGNATURE]
        specs = serve.structured_input_signature[1]
        scored: list[dict[str, float]] = []
        for batch in batches:
            # The type is given because a column of empty lists has no value that shows it.
            found = serve(**{name: tf.constant(v, specs[name].dtype) for name, v in batch.items()})
            columns = [found[name].numpy().tolist() for name in self.features.outputs]
            scored += [
                dict(zip(self.features.outputs, row, strict=True))
                for row in zip(*columns, strict=True)
            ]
        return scored
