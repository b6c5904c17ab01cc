"""`python -m forebay.executors.trainer --job DIR --index 0 --attempt N --lease-epoch N`."""

from forebay.executors.trainer.train import main

main()
