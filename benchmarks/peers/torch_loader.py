"""PyTorch's DataLoader over pyarrow: `python torch_loader.py WORKERS`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from columns import encoded
from served import MINIBATCH_ROWS, answer
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Files(IterableDataset):
    """Minibatches of tensors; each worker has files of its own."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        worker = get_worker_info()
        paths = self._paths if worker is None else self._paths[worker.id :: worker.num_workers]
        for path in paths:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(MINIBATCH_ROWS, use_threads=False):
                    yield {
                        name: torch.from_numpy(np.require(each, requirements="W"))
                        for name, each in encoded(batch).items()
                    }


def main() -> None:
    workers = int(sys.argv[1])
    torch.set_num_threads(1)

    def read(paths: list[Path]) -> Iterator[int]:
        for batch in DataLoader(Files(paths), batch_size=None, num_workers=workers):
            yield len(batch["label"])

    answer(read)


if __name__ == "__main__":
    main()
