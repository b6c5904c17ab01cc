"""Small faults put into pure rules one at a time, and the tests that have to detect them."""
