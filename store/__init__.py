"""The experiment on disk: its folder, its database, and what protects both."""
