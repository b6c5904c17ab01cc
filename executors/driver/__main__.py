"""`python -m forebay.executors.driver --job DIR --index 0 --attempt N`."""

from forebay.executors.driver.driver import main

main()
