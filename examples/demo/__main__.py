"""`python -m examples.demo`, called by `make demo`; see `Settings`."""

from __future__ import annotations

import os
import sys

from examples.demo.settings import CONFIG, PIPELINE, Settings
from examples.demo.signals import end_in_good_order
from forebay.commands.shared.own_home import closed_home
from forebay.errors import ForebayError, UsageError
from forebay.home.database.format import require_format
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.system.extras import require_extra
from forebay.system.output.redaction import filter_output

_INTERRUPTED = 130


def main() -> int:
    """Run the demo; an error is one line on standard error, as with every command."""
    end_in_good_order()
    filter_output(stdout=False)
    try:
        if not (CONFIG / "pipelines" / f"{PIPELINE}.yaml").is_file():
            raise UsageError("the demo's YAML is not here: run it in the repository's root")
        settings = Settings.of(os.environ)
        require_extra("demo")
        from examples.demo.show import Demo

        if settings.live:
            from examples.demo.live.following import play_live

            play_live(settings.home)
            return 0
        require_format(settings.home)
        closed_home(settings.home)
        environ = {**os.environ, ENVIRONMENT_NAME: str(settings.home.root)}
        Demo(settings, environ).play()
    except ForebayError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
