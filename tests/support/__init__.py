"""What several test modules share: generated projects and counts that import nothing of ours."""
