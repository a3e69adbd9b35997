"""Speed, as ratios within one run: `make bench`.

A missed target is printed and no error: what is measured on a busy machine decides nothing, and the benchmarks after it
still run. Results that are wrong end a benchmark with an error.
"""
