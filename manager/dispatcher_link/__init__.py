"""The manager's side of the pipe to the dispatcher."""
