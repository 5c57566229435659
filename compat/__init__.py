"""The interfaces of other tuners: `nni/` and `tune/`. Other rooms reach them by `protocol.foreign` only."""
