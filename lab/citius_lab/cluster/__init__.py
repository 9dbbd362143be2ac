"""Load from several machines: generators on the workers of a Dask cluster."""
