"""`python -m forebay.demo`, what `make demo` calls: STREAM=log|kafka, KILL=1, WAIT=9h."""

from __future__ import annotations

import os
import signal
import sys

from forebay.demo.settings import CONFIG, PIPELINE, Settings
from forebay.demo.show import Demo
from forebay.errors import ForebayError, UsageError
from forebay.home import ENVIRONMENT_NAME

_INTERRUPTED = 130


def main() -> int:
    """Play the demo; errors are one line on standard error, as with every command."""
    # A terminated demo cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not (CONFIG / "pipelines" / f"{PIPELINE}.yaml").is_file():
            raise UsageError("the demo's YAML is not here: call it in the repository's root")
        settings = Settings.of(os.environ)
        environ = {**os.environ, ENVIRONMENT_NAME: str(settings.home.root)}
        return Demo(settings, environ).play()
    except ForebayError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
