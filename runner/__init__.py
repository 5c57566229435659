"""The experiment's state machine: events in, effects out. Pure: no I/O, no clock, no threads."""
