"""`python -m forebay.executors.trainer --job DIR`."""

from forebay.executors.trainer.train import main

main()
