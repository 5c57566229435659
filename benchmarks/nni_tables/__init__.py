"""The tables of `benchmarks/nni_files.py`, one file each."""
