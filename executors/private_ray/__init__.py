"""The private Ray: a supervisor process holds it, managers lease it."""
