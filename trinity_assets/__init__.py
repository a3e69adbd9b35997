"""trinity-assets: an asset graph that turns a catalog of workers, benchmarks, backbones and routers into an evaluated,
reproducible router checkpoint, asking each worker each question once."""
