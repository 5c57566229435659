"""Where trials run: the contract of an executor, and what several executors share."""
