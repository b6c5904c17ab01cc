"""One Kafka broker (KRaft) for the demo and the tests, and the Java and jars that it needs."""
