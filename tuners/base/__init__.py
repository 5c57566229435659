"""What tuners share: the base classes, the history of results, layouts of search spaces."""
