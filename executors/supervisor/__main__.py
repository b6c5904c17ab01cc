"""`python -m forebay.executors.supervisor --job DIR`."""

from forebay.executors.supervisor.runner import main

main()
