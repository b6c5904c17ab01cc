"""What a stranger may write: payloads and files with faults, from a seed."""
