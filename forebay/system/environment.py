"""What a child process inherits from its parent's environment: what it needs, and no other secret.

Lists contain names of variables, and prefixes that end in `*`. Every process that Forebay starts
gets the variables of some of these lists, and those that its user declared
(`job.roles.*.runtime.environment`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Patterns = tuple[str, ...]

# What any program needs. Embedded PostgreSQL and Kafka get nothing else.
BASE: Patterns = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "TERM", "NO_COLOR"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "TMPDIR", "TMP", "TEMP", "XDG_*"),
    # The loader and the allocator: sites preload one of their own.
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_*", "TCMALLOC_*", "MIMALLOC_*"),
    *("PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION"),
)
# How a Java runtime is found, and its options for this machine.
JAVA: Patterns = ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
# Proxies, trusted certificates, and the identity to authenticate with.
NETWORK: Patterns = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("OPENSSL_CONF", "OPENSSL_MODULES", "GRPC_*", "KRB5*"),
)
# How computing libraries share the machine.
COMPUTE: Patterns = (
    *("TF_*", "XLA_*", "KERAS_*", "ONEDNN_*", "DNNL_*"),
    *("CUDA_*", "CUDNN_*", "CUBLAS_*", "NCCL_*", "NVIDIA_*", "ROCR_*", "HIP_*", "HSA_*"),
    *("OMP_*", "KMP_*", "GOMP_*", "OPENBLAS_*", "MKL_*", "BLIS_*", "NUMEXPR_*", "NUMBA_*"),
    *("ARROW_*", "MPLCONFIGDIR"),
)
# For a database on a PostgreSQL server: what libpq adds to the address.
HOME_DATABASE: Patterns = (
    "FOREBAY_DATABASE",
    *("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE"),
    *("PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR", "PGSSL*", "PGCHANNELBINDING"),
    *("PGREQUIRE*", "PGGSS*", "PGKRBSRVNAME", "PGAPPNAME", "PGOPTIONS", "PGCONNECT_TIMEOUT"),
)
# For a store in a bucket: what boto3 reads.
BUCKET: Patterns = ("AWS_*", "BOTO_CONFIG")
# Where rows are read: what pyarrow, fsspec, pyiceberg, boto3 and Kafka's clients look for.
STORAGE: Patterns = (
    *BUCKET,
    *("GOOGLE_*", "GCE_METADATA_*", "GCLOUD_PROJECT", "CLOUDSDK_*", "NO_GCE_CHECK"),
    *("STORAGE_EMULATOR_HOST", "AZURE_*", "FSSPEC_*", "PYICEBERG_*"),
    *("HADOOP_*", "CLASSPATH", "LIBHDFS_OPTS"),
    *JAVA,
)
# What each process of Forebay gets.
PROCESS: Patterns = (*BASE, *NETWORK, *COMPUTE, "FOREBAY_*")
# For processes that plan a job and start its roles: stages and supervisors.
PLANNING: Patterns = (*PROCESS, *HOME_DATABASE, *STORAGE)
# They contain a password, so no prefix covers them.
_BY_NAME_ALONE = frozenset({"FOREBAY_DATABASE"})


def inherited(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """The variables of an environment that match patterns: names, and prefixes that end in `*`."""
    wanted = frozenset(patterns)
    prefixes = tuple(each[:-1] for each in wanted if each.endswith("*"))
    return {
        name: value
        for name, value in environ.items()
        if name in wanted or (name.startswith(prefixes) and name not in _BY_NAME_ALONE)
    }
