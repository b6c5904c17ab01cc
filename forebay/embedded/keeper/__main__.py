"""`python -m forebay.embedded.keeper --home DIR --config DIR…`."""

from forebay.embedded.keeper.keeper import main

main()
