"""Trials in processes on this machine, without Ray."""
