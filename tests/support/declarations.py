"""Declarations that use every key of every model, and the models' keys by their place in YAML."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Value = dict[str, Any]
KeyPath = tuple[str | int, ...]

COLUMNS = {
    "event": "int",
    "at": "timestamp",
    "user": "string",
    "price": "float",
    "mobile": "bool",
    "tags": "list<string>",
    "clicked": "int",
}
_WRITTEN: dict[str, Value] = yaml.load(
    """
source:
  description: text
  columns: {event: int, at: timestamp, user: string, price: float, mobile: bool,
    tags: list<string>, clicked: int, known: timestamp}
  event_time: at
  starts: "2026-01-01"
  ends: "2026-06-01"
  ready: {marker: _SUCCESS, wait: 15m, late: skip, silent_max: 6h}
  label_null: dead_letter
  bad_rows: dead_letter
  dead_letter_rows_max: 10
  dead_letter_bytes_max: 1000
options:
  memory: {table: clicks}
  parquet: {path: data, window_path: "day={date}/*", storage: {anon: true}}
  log: {path: log, moved: old/log, close_delay: 2m, timestamp_jump_max: 30m}
  json: {path: lines, window_path: "day={date}/*", storage: {anon: true}, compression: gzip}
  csv: {path: fields, window_path: "day={date}/*", storage: {anon: true}, compression: gzip,
    delimiter: ";", names: [event, at, user], nulls: [""], list_separator: ","}
  tfrecord: {path: records, window_path: "day={date}/*", storage: {anon: true}, compression: gzip}
  iceberg: {catalog: {type: sql}, table: shop.clicks}
  kafka:
    bootstrap: localhost:9092
    close_delay: 2m
    timestamp_jump_max: 30m
    topic: clicks
    format: protobuf
    schema_file: click.desc
    message_type: shop.Click
    message_rows_max: 1000
    message_bytes_max: 65536
    client: {security_protocol: SASL_SSL, sasl_mechanism: PLAIN, sasl_plain_username: user,
      sasl_plain_password: ./word, sasl_kerberos_service_name: kafka,
      sasl_kerberos_domain_name: example.org, ssl_cafile: ca.pem, ssl_certfile: client.pem,
      ssl_keyfile: client.key, ssl_password: ./word, ssl_crlfile: revoked.pem,
      ssl_check_hostname: true, client_id: forebay, client_rack: a, api_version: "3.9",
      request_timeout_ms: 30000, retry_backoff_ms: 100, reconnect_backoff_ms: 50,
      reconnect_backoff_max_ms: 1000, connections_max_idle_ms: 540000,
      metadata_max_age_ms: 300000, fetch_max_wait_ms: 500, fetch_min_bytes: 1,
      fetch_max_bytes: 1048576, max_partition_fetch_bytes: 1048576,
      receive_buffer_bytes: 65536, send_buffer_bytes: 65536}
pipeline:
  description: text
  dataset:
    window: 1d
    timezone: Europe/Berlin
    start: "2026-03-01"
    end: "2026-04-01"
    event_id: [event, user]
    label: {column: clicked, positive: 1, negative: 0, known_at: known}
    label_join: 36h
    streams:
      history: {sources: [parquet, iceberg, memory], offset: 24h, feed: batch, weight: 1.5,
        floor: 0.1}
      fresh: {sources: [kafka, log]}
    features:
      user: {encode: hash, column: user, buckets: 100, dimension: 4}
      hashed_hour: {encode: hash, column: at, part: hour, buckets: 100}
      mobile: {encode: vocabulary, column: mobile, values: ["true", "false"], dimension: 4}
      known_hour: {encode: vocabulary, column: at, part: hour, values: [7, 8]}
      steps: {encode: bucketise, column: price, boundaries: [1, 2.5], dimension: 4}
      hour_steps: {encode: bucketise, column: at, part: hour, boundaries: [6, 18]}
      price: {encode: numeric, column: price, transform: log1p, mean: 1.5, scale: 2, missing: -1}
      weekday: {encode: numeric, column: at, part: weekday}
      pair: {encode: cross, columns: [user, mobile], buckets: 100, dimension: 4}
    slices: [mobile, steps]
    queue_unit: 512
    plan_ahead_windows: 20
  model:
    kind: towers
    tower: {hidden: [8, 4]}
    mixture: {mode: measured, memory_tower: {hidden: [4]}, adapt_tower: {hidden: [4]}, gain: 0.1,
      memory_output: both, embeddings: separate, stop_gradient: theta_only,
      memory_inputs: random, adapt_learns: both, memory_embeddings: true}
    delay_head: {hidden: [8], q_min: 0.1}
    embedding_learning_rate: 0.2
    dense_learning_rate: 0.01
    seed: 3
  train:
    paradigm: mixture
    delay: head
    compare: [stream, mixed, {paradigm: batch_then_stream, delay: fnw}]
    seeds: 2
    guard: false
    minibatch_rows: 256
    warm_start: "2026-02-01"
    accept: [incomplete_labels, no_positives]
  job:
    plane: local
    process: standing
    standing: {idle: 5m, ahead: 2m, memory: 4GiB}
    continuous: {slice: 5s, seal: 20s, lag_slo: 2m}
    roles:
      data:
        count: 2
        runtime: {python: /usr/bin/python3, environment: [ACME_TOKEN, "ACME_SITE_*"]}
        threads: 2
        cpu: 1.5
        memory: 2GiB
      trainer:
        count: 1
        runtime: {python: /usr/bin/python3, environment: [ACME_TOKEN, "ACME_SITE_*"]}
        threads: 2
        cpu: 1.5
        memory: 2GiB
    buffers: {rows_max: 1000, bytes_max: 65536, chunk_rows: 100, credits: 2, flush_seconds: 0.5,
      settle_seconds: 1.5, align_hours: 2}
    failover:
      restarts_max: 2
      heartbeat_timeout: 5s
      task_attempts_max: 2
      progress_deadlines: {driver: 1m, data: 10m, trainer: 20m}
    checkpoint: {every_steps: 50, windows_kept: 10}
    publish: {when: gate, metric: log_loss, against: served, min_rows: 500, windows_kept: 10,
      serving_kept: 3}
    judge_rows_max: 1000
    windows_kept: 20
  schedule:
    catchup: true
    active_runs_max: 4
    grace: 30s
    retries: 4
    retry_delay: 5s
    turn_wait: 12h
    on_stale: refuse
    plan_timeout: 30m
    train_timeout: 6h
    pool: small
    owner: ads
    tags: [ctr]
""",
    yaml.CSafeLoader,
)
_SOURCE, _OPTIONS, _PIPELINE = (_WRITTEN[each] for each in ("source", "options", "pipeline"))


def declarations() -> dict[str, Value]:
    """Files of one valid project that uses every key; the label's rules need one file each."""
    files: dict[str, Value] = {
        f"sources/{kind}.yaml": {"kind": kind, "options": options, **_SOURCE}
        for kind, options in _OPTIONS.items()
    }
    files["sources/framed.yaml"] = copy.deepcopy(files["sources/kafka.yaml"])
    framed = files["sources/framed.yaml"]["options"]
    framed |= {"format": "avro", "schema_ids": {"7": "click.avsc"}}
    del framed["schema_file"], framed["message_type"]
    files["pipelines/ads.yaml"] = _PIPELINE
    for rule in ("greater_than", "less_than"):
        other = copy.deepcopy(_PIPELINE)
        other["dataset"]["label"] = {"column": "clicked", rule: 0.5}
        files[f"pipelines/{rule}.yaml"] = other
    several = copy.deepcopy(_PIPELINE)
    first = several["dataset"].pop("label")
    several["dataset"]["named_labels"] = {
        "click": {**first, "delay": "none", "weight": 1.5, "label_join": "48h"},
        "expensive": {"column": "clicked", "greater_than": 0.5},
        "cheap": {"column": "clicked", "less_than": 0.5},
    }
    several["job"]["publish"] = {**several["job"]["publish"], "label": "expensive"}
    files["pipelines/several.yaml"] = several
    followed = copy.deepcopy(_PIPELINE)
    del followed["dataset"]["timezone"]
    followed["dataset"]["window"] = "1h"
    followed["job"] |= {"process": "continuous"}
    followed["job"]["publish"] = {**followed["job"]["publish"], "every": "10m"}
    files["pipelines/followed.yaml"] = followed
    files = copy.deepcopy(files)
    for file, value in files.items():
        if file.startswith("pipelines/"):  # no two serve at one path
            value["job"]["publish"]["serving"] = f"served/{Path(file).stem}"
    return files


def write(config: Path, files: dict[str, Value]) -> None:
    for file, value in files.items():
        path = config / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump(value))


def dump(value: Value) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, width=200)


class _Plain(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@dataclass(frozen=True)
class Key:
    file: str
    path: KeyPath  # of the mapping that holds the key
    definition: str
    key: str
    required: bool

    def __str__(self) -> str:
        return f"{self.definition}.{self.key} in {self.file}"


def keys_of_models(schema: Value, files: dict[str, Value]) -> Iterator[Key]:
    for file, value in files.items():
        root = "SourceSpec" if file.startswith("sources/") else "PipelineSpec"
        yield from _follow(schema, {"$ref": f"#/$defs/{root}"}, value, file, ())


def _follow(schema: Value, node: Value, value: Any, file: str, path: KeyPath) -> Iterator[Key]:
    name = node.get("$ref", "").rpartition("/")[2]
    node = schema["$defs"][name] if name else node
    if isinstance(value, list):
        lists = [each["items"] for each in (node, *node.get("anyOf", [])) if "items" in each]
        for index, item in enumerate(value if lists else ()):
            yield from _follow(schema, lists[0], item, file, (*path, index))
    if not isinstance(value, dict):
        return
    for branch, part in _branches(schema, node, value):
        yield from _follow(schema, branch, value.get(part, value), file, (*path, *part.split()))
    others = node.get("additionalProperties")
    for key, item in value.items():
        if key in node.get("properties", {}):
            if not others:
                yield Key(file, path, name, key, key in node.get("required", []))
            yield from _follow(schema, node["properties"][key], item, file, (*path, key))
        elif isinstance(others, dict):
            yield from _follow(schema, others, item, file, (*path, key))


def _branches(schema: Value, node: Value, value: Value) -> Iterator[tuple[Value, str]]:
    for branch in [*node.get("anyOf", []), *node.get("oneOf", [])]:
        if _fits(schema, branch, value):
            yield branch, ""
    for branch in node.get("allOf", []):
        if value.get("kind") == branch["if"]["properties"]["kind"]["const"]:
            yield branch["then"]["properties"]["options"], "options"


def _fits(schema: Value, branch: Value, value: Value) -> bool:
    definition = schema["$defs"].get(branch.get("$ref", "").rpartition("/")[2])
    if definition is None:
        return False
    encode = definition["properties"].get("encode", {})
    return "const" not in encode or encode["const"] == value.get("encode")


def models_and_keys(schema: Value) -> set[tuple[str, str]]:
    """All (model, key) pairs of the schema, but those of models that take any key."""
    return {
        (name, key)
        for name, definition in schema["$defs"].items()
        if not definition.get("additionalProperties")
        for key in definition.get("properties", {})
    }


def renamed(value: Value, path: KeyPath, old: str, new: str, *, alone: set[str]) -> Value:
    copied = copy.deepcopy(value)
    mapping: Any = copied
    for part in path:
        mapping = mapping[part]
    items = list(mapping.items())
    mapping.clear()
    mapping.update(
        {(new if key == old else key): item for key, item in items if key == old or key in alone}
    )
    return copied


def key_place(text: str, path: KeyPath, key: str) -> tuple[int, int]:
    node: Any = yaml.compose(text, Loader=yaml.CSafeLoader)
    for part in path:
        if isinstance(part, int):
            node = node.value[part]
        else:
            node = next(value for name, value in node.value if name.value == part)
    mark = next(name.start_mark for name, _ in node.value if name.value == key)
    return mark.line + 1, mark.column + 1


ALPHABET = "abcdefghijklmnopqrstuvwxyz_"


def misspellings(key: str, letters: str = ALPHABET) -> set[str]:
    found = {key[:i] + key[i + 1 :] for i in range(len(key))}
    found |= {key[:i] + key[i + 1] + key[i] + key[i + 2 :] for i in range(len(key) - 1)}
    for letter in letters:
        found |= {key[:i] + letter + key[i + 1 :] for i in range(len(key))}
        found |= {key[:i] + letter + key[i:] for i in range(len(key) + 1)}
    return found - {key, ""}
