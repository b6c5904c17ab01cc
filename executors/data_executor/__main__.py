"""`python -m forebay.executors.data_executor --job DIR --index N --attempt N`."""

from forebay.executors.data_executor.executor import main

main()
