"""How a name in a config becomes a class: the registry that tuners and assessors share."""
