"""How much a process of a job accepts from a caller that reaches its socket."""

from __future__ import annotations

Options = list[tuple[str, int]]

# The largest message is `open`: two positions of about 250 bytes for each task that was begun. This
# is a million tasks.
MESSAGE_BYTES_MAX = 512 << 20
# Connections beside those of waiting callers: each role of a job has one.
_SPARE_CONNECTIONS = 64
# A frame holds one minibatch: 8,192 rows of 400 bytes are 3 MB.
FRAME_BYTES_MAX = 1 << 30
# How long a process on the same machine may take to accept a connection, and to identify itself.
CONNECT_SECONDS = 5.0
# How soon a frame server without frames notices that its caller is gone.
POLL_SECONDS = 0.1
# Within a frame, once its first byte was received or sent.
STALL_SECONDS = 60.0
# A caller has at most a few calls under way: one for each of its threads.
_CALLS_MAX = 16
_FIRST_BYTES_SECONDS = 5
_IDLE_SECONDS = 60
_IDENTITY_ALONE = 1 << 0

CLIENT_OPTIONS: Options = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # Another process may listen at the next address: nothing is shared with earlier channels.
    ("grpc.use_local_subchannel_pool", 1),
]


def server_options(threads: int) -> Options:
    """Options of a gRPC server in which up to `threads` calls wait at the same time.

    Nothing is decompressed: otherwise a message of a few kilobytes could grow to any size before
    its size is checked. A connection that sends nothing is closed.
    """
    return [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ALONE),
        ("grpc.per_message_decompression", 0),
        ("grpc.max_allowed_incoming_connections", threads + _SPARE_CONNECTIONS),
        ("grpc.max_concurrent_streams", _CALLS_MAX),
        ("grpc.server_handshake_timeout_ms", _FIRST_BYTES_SECONDS * 1000),
        ("grpc.max_connection_idle_ms", _IDLE_SECONDS * 1000),
    ]
