"""`python -m forebay.executors.driver --job DIR`."""

from forebay.executors.driver.driver import main

main()
