"""Kinds `json`, `csv` and `tfrecord` as declarations see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from forebay.datatasks.sources.common.contract.option_types import Text
from forebay.datatasks.sources.common.files.folder_kind import FolderKind, FolderOptions

Compression = Literal["none", "gzip", "zstd", "snappy"]
COMPRESSED: Mapping[str, Compression] = {
    ".gz": "gzip",
    ".zst": "zstd",
    ".snappy": "snappy",
    ".sz": "snappy",
}
_Character = Annotated[str, StringConstraints(pattern=r"^[\t -!#-~]$")]
_COMPRESSION = (
    "How files are compressed; without it, the end of a name says it: .gz, .zst, .snappy or .sz"
)


def _suffixes(*plain: str) -> tuple[str, ...]:
    return tuple(end + compressed for end in plain for compressed in ("", *COMPRESSED))


TSV = _suffixes(".tsv")


class JsonKind(FolderKind):
    """Files of JSON objects, one in each line."""

    name: ClassVar[str] = "json"
    source: ClassVar[str] = "forebay.datatasks.sources.records.source:JsonSource"
    suffixes: ClassVar[tuple[str, ...]] = _suffixes(".json", ".jsonl", ".ndjson")

    class Options(FolderOptions):
        """Files of JSON objects, one in each line.

        A folder means all `*.json`, `*.jsonl` and `*.ndjson` in it and in its subfolders, also
        compressed ones such as `*.json.gz`; not those whose names start with `.` or `_`.
        """

        compression: Compression | None = Field(default=None, description=_COMPRESSION)


class CsvKind(FolderKind):
    """Files of fields with a delimiter between them, one row in each line."""

    name: ClassVar[str] = "csv"
    source: ClassVar[str] = "forebay.datatasks.sources.records.source:CsvSource"
    suffixes: ClassVar[tuple[str, ...]] = (*_suffixes(".csv"), *TSV)

    class Options(FolderOptions):
        """Files of fields with a delimiter between them, one row in each line.

        A folder means all `*.csv` and `*.tsv` in it and in its subfolders, also compressed ones
        such as `*.csv.gz`; not those whose names start with `.` or `_`.
        """

        compression: Compression | None = Field(default=None, description=_COMPRESSION)
        delimiter: _Character | None = Field(
            default=None,
            description="Between two fields; without it, a tab in *.tsv files, a comma in others",
        )
        names: list[Text] | None = Field(
            default=None,
            min_length=1,
            description="Names of all fields, for files whose first line does not say them",
        )
        nulls: list[str] = Field(
            default=[],
            description="Fields that are a missing value like an empty one, exactly as written",
        )
        list_separator: _Character = Field(
            default="|", description="Between two values of a list in one field"
        )


class TfrecordKind(FolderKind):
    """TFRecord files of tf.Example messages."""

    name: ClassVar[str] = "tfrecord"
    source: ClassVar[str] = "forebay.datatasks.sources.records.source:TfrecordSource"
    suffixes: ClassVar[tuple[str, ...]] = (
        ".tfrecord",
        ".tfrecords",
        ".tfrecord.gz",
        ".tfrecords.gz",
    )

    class Options(FolderOptions):
        """TFRecord files of tf.Example messages.

        A folder means all `*.tfrecord` and `*.tfrecords` in it and in its subfolders, also `.gz`
        ones; not those whose names start with `.` or `_`.
        """

        compression: Literal["none", "gzip"] | None = Field(
            default=None,
            description="How files are compressed; without it, the end of a name says it: .gz",
        )
