"""`python -m forebay.executors.supervisor --job DIR`."""

from forebay.executors.supervisor.supervisor import main

main()
