"""What a stranger may write: payloads and files with faults, by the number of a seed."""
