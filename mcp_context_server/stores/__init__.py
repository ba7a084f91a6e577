"""Where sessions are kept. One behavioural contract (`tests/stores`) holds for all."""
