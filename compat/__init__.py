"""The interfaces of other tuners: `nni/` and `tune/`. The rooms below reach them by `protocol.foreign`."""
