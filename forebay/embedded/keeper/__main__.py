"""`python -m forebay.embedded.keeper --home DIR --config DIR… --component-deadline SECONDS`."""

from forebay.embedded.keeper.keeper import main

main()
