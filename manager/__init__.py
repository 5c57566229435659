"""The process that runs an experiment: the loop, the link to the dispatcher, control from outside, hooks."""
